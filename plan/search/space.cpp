#include "plan/search/space.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "plan/search/encoder_ways.hpp"
#include "plan/search/search_job.hpp"
#include "plan/search/sink_ways.hpp"

namespace troupe {

/// Of choices whose steps differ by less than this factor, the one with the fewest ranks is taken.
static constexpr double kAboutEqual = 1.001;

struct SearchSpace::Parts {
  Parts(const Config& config, const JobDevices& devices, const SearchLimits& limits)
      : job(config, devices, limits), sinks(job), encoders(job) {}

  std::vector<std::vector<RunOption>> OptionsOf(std::size_t group) {
    std::vector<std::vector<RunOption>> options;
    const SinkPoint& sink = sinks.PointOf(group);
    // A shorter window takes longer: it is of no use where a longer one leaves room for everything.
    if (sink.window != 0 &&
        encoders.MostShared(sinks.LongerOf(group)) <= sinks.FreeBytesOf(group)) {
      options.resize(job.encoders.size());
      return options;
    }
    const auto& all = encoder_ways[group] = encoders.With(sink);
    for (const auto& ways : all) {
      auto& list = options.emplace_back();
      for (const EncoderWay& way : ways) list.push_back(way.option);
    }
    return options;
  }

  /// Gives each encoder with devices of another kind the fewest of them with which the step is at most
  /// kAboutEqual times as long: the search does not count these ranks. Returns the time of the step.
  double Shrink(const SinkOption& sink, const Choice& choice,
                std::vector<EncoderWay>& chosen) const {
    const double limit_s = kAboutEqual * choice.step_s;
    double step_s = choice.step_s;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (!chosen[i].point.on_own_devices) continue;
      EncoderWay best = chosen[i];
      for (const EncoderWay& way : encoder_ways.at(choice.group)[i]) {
        if (way.point.layout.num_ranks() > best.point.layout.num_ranks()) continue;
        chosen[i] = way;
        std::vector<const RunOption*> options;
        for (const EncoderWay& each : chosen) options.push_back(&each.option);
        const double its_s = StepTime({}, sink, options);
        const auto rank_of = [](const EncoderWay& of, double of_s) {
          return std::pair(of.point.layout.num_ranks(), of_s);
        };
        if (its_s > limit_s || rank_of(way, its_s) >= rank_of(best, step_s)) continue;
        best = way;
        step_s = its_s;
      }
      chosen[i] = best;
    }
    return step_s;
  }

  /// Returns the sizes of the nodes of a job, those of the main devices first.
  std::vector<int> NodeSizes(int main_ranks, const std::vector<EncoderWay>& chosen) const {
    std::vector<int> sizes;
    const auto add = [&sizes](int ranks, const DeviceModel& device) {
      for (int left = ranks; left > 0; left -= device.topology.devices_per_node) {
        sizes.push_back(std::min(left, device.topology.devices_per_node));
      }
    };
    add(main_ranks, job.devices.main);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (!chosen[i].point.on_own_devices) continue;
      add(chosen[i].point.layout.num_ranks(), job.DeviceOf(i));
    }
    return sizes;
  }

  SearchJob job;
  SinkWays sinks;
  EncoderWays encoders;
  std::map<std::size_t, std::vector<std::vector<EncoderWay>>> encoder_ways;  ///< by group
};

SearchSpace::SearchSpace(const Config& config, const JobDevices& devices,
                         const SearchLimits& limits)
    : parts_(std::make_unique<Parts>(config, devices, limits)) {}

SearchSpace::~SearchSpace() = default;

std::size_t SearchSpace::num_ways() const { return parts_->sinks.num_ways(); }
std::size_t SearchSpace::num_priced() const { return parts_->sinks.num_priced(); }

std::vector<PlannedJob> SearchSpace::Best(double within) const {
  Parts& parts = *parts_;
  std::map<std::size_t, std::vector<SinkOption>> priced;  // by set
  const ChoiceProblem problem{
      .max_ranks = parts.job.limits.ranks,
      .sets_s = parts.sinks.least_s(),
      .sinks_of = [&](std::size_t set) { return priced[set] = parts.sinks.Price(set); },
      .options_of = [&](std::size_t group) { return parts.OptionsOf(group); }};
  std::vector<PlannedJob> jobs;
  parts.encoder_ways.clear();
  std::set<std::size_t> ways;
  for (const Choice& choice : BestChoices(problem, within, kAboutEqual)) {
    // Of the windows of one way to run the sink, the best comes first.
    if (!ways.insert(parts.sinks.WholeStepOf(choice.group)).second) continue;
    std::vector<EncoderWay> chosen;
    for (std::size_t i = 0; i < choice.options.size(); ++i) {
      chosen.push_back(parts.encoder_ways.at(choice.group)[i][choice.options[i]]);
    }
    const double step_s = parts.Shrink(priced.at(choice.set).at(choice.sink), choice, chosen);
    PlannedJob job{.sink = parts.sinks.PointOf(choice.group),
                   .encoders = {},
                   .node_sizes = parts.NodeSizes(choice.ranks, chosen),
                   .step_s = step_s};
    job.ranks = std::reduce(job.node_sizes.begin(), job.node_sizes.end());
    for (const EncoderWay& way : chosen) job.encoders.push_back(way.point);
    const auto shares = [](const EncoderPoint& point) {
      return point.placement == Placement::kColocated;
    };
    if (std::ranges::none_of(job.encoders, shares)) job.sink.window = 0;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace troupe
