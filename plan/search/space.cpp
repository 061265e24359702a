#include "plan/search/space.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "plan/search/encoder_ways.hpp"
#include "plan/search/search_job.hpp"
#include "plan/search/sink_ways.hpp"

namespace troupe {

struct SearchSpace::Parts {
  Parts(const Config& config, const DeviceModel& device, const SearchLimits& limits)
      : job(config, device, limits), sinks(job), encoders(job) {}

  std::vector<std::vector<RunOption>> OptionsOf(std::size_t group) {
    std::vector<std::vector<RunOption>> options;
    const SinkPoint& sink = sinks.PointOf(group);
    // A shorter window takes longer: it is of no use where a longer one leaves room for everything.
    if (sink.window != 0 &&
        encoders.MostShared(sinks.LongerOf(group)) <= sinks.FreeBytesOf(group)) {
      options.resize(job.encoders.size());
      return options;
    }
    auto& points = encoder_points[group];
    for (const auto& ways : encoders.With(sink)) {
      auto& list = options.emplace_back();
      auto& its_points = points.emplace_back();
      for (const EncoderWay& way : ways) {
        list.push_back(way.option);
        its_points.push_back(way.point);
      }
    }
    return options;
  }

  SearchJob job;
  SinkWays sinks;
  EncoderWays encoders;
  std::map<std::size_t, std::vector<std::vector<EncoderPoint>>> encoder_points;  ///< by group
};

SearchSpace::SearchSpace(const Config& config, const DeviceModel& device,
                         const SearchLimits& limits)
    : parts_(std::make_unique<Parts>(config, device, limits)) {}

SearchSpace::~SearchSpace() = default;

std::size_t SearchSpace::num_ways() const { return parts_->sinks.num_ways(); }
std::size_t SearchSpace::num_priced() const { return parts_->sinks.num_priced(); }

std::vector<PlannedJob> SearchSpace::Best(double within) const {
  const ChoiceProblem problem{
      .max_ranks = parts_->job.limits.ranks,
      .sets_s = parts_->sinks.least_s(),
      .sinks_of = [parts = parts_.get()](std::size_t set) { return parts->sinks.Price(set); },
      .options_of = [parts = parts_.get()](std::size_t group) { return parts->OptionsOf(group); }};
  std::vector<PlannedJob> jobs;
  parts_->encoder_points.clear();
  std::set<std::size_t> ways;
  for (const Choice& choice : BestChoices(problem, within, 1.001)) {
    // Of the windows of one way to run the sink, the best comes first.
    if (!ways.insert(parts_->sinks.WholeStepOf(choice.group)).second) continue;
    PlannedJob job{parts_->sinks.PointOf(choice.group),
                   {},
                   choice.ranks,
                   parts_->job.device.topology.devices_per_node,
                   choice.step_s};
    const auto& points = parts_->encoder_points.at(choice.group);
    for (std::size_t i = 0; i < choice.options.size(); ++i) {
      job.encoders.push_back(points[i][choice.options[i]]);
    }
    const auto shares = [](const EncoderPoint& point) {
      return point.placement == Placement::kColocated;
    };
    if (std::ranges::none_of(job.encoders, shares)) job.sink.window = 0;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace troupe
