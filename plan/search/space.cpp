#include "plan/search/space.hpp"

#include <map>

#include "plan/search/encoder_ways.hpp"
#include "plan/search/search_job.hpp"
#include "plan/search/sink_ways.hpp"

namespace troupe {

struct SearchSpace::Parts {
  Parts(const Config& config, const DeviceModel& device, const SearchLimits& limits)
      : job(config, device, limits), sinks(job), encoders(job) {}

  std::vector<std::vector<RunOption>> OptionsOf(std::size_t group) {
    std::vector<std::vector<RunOption>> options;
    auto& points = encoder_points[group];
    for (const auto& ways : encoders.With(sinks.PointOf(group))) {
      auto& list = options.emplace_back();
      auto& its_points = points.emplace_back();
      for (const EncoderWay& way : ways) {
        list.push_back(way.option);
        its_points.push_back(way.point);
      }
    }
    return options;
  }

  /// The fewest nodes with as many ranks each.
  int NodesFor(int ranks) const {
    const int most = job.device.topology.devices_per_node;
    int nodes = (ranks + most - 1) / most;
    while (ranks % nodes != 0) ++nodes;
    return nodes;
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
  for (const Choice& choice : BestChoices(problem, within, 1.001)) {
    PlannedJob job{parts_->sinks.PointOf(choice.group),
                   {},
                   choice.ranks,
                   parts_->NodesFor(choice.ranks),
                   choice.step_s};
    const auto& points = parts_->encoder_points.at(choice.group);
    for (std::size_t i = 0; i < choice.options.size(); ++i) {
      job.encoders.push_back(points[i][choice.options[i]]);
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace troupe
