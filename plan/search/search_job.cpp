#include "plan/search/search_job.hpp"

#include <algorithm>
#include <limits>

#include "plan/stage_parts.hpp"

namespace troupe {

const std::vector<Recompute>& RecomputeLevels() {
  static const std::vector<Recompute> levels = {
      {}, {LayerPart::kMlpUp}, {LayerPart::kAttention, LayerPart::kMlpUp}, {LayerPart::kLayer}};
  return levels;
}

std::vector<std::int64_t> PowersOfTwo(std::int64_t most) {
  std::vector<std::int64_t> powers;
  for (std::int64_t power = 1; power <= most; power *= 2) powers.push_back(power);
  return powers;
}

std::vector<std::int64_t> DivisorsOf(std::int64_t number) {
  std::vector<std::int64_t> divisors;
  std::vector<std::int64_t> others;
  for (std::int64_t i = 1; i * i <= number; ++i) {
    if (number % i != 0) continue;
    divisors.push_back(i);
    if (i * i < number) others.push_back(number / i);
  }
  divisors.insert(divisors.end(), others.rbegin(), others.rend());
  return divisors;
}

std::vector<std::int64_t> HalvesOf(std::int64_t number) {
  const std::vector<std::int64_t> divisors = DivisorsOf(number);
  std::vector<std::int64_t> halves;
  for (auto divisor = divisors.rbegin(); divisor != divisors.rend(); ++divisor) {
    if (halves.empty() || *divisor * 2 <= halves.back()) halves.push_back(*divisor);
  }
  return halves;
}

SearchJob::SearchJob(const Config& base, const JobDevices& given, const SearchLimits& most)
    : config(base),
      devices(given),
      limits(most),
      sink(base.Sink().name),
      global_batch(base.global_batch()) {
  for (ModuleConfig& module : config.modules) {
    if (!module.model->computes()) {
      throw LayoutError("module " + module.name +
                        " states its times, which are the same in every layout; expected modules "
                        "that compute");
    }
    // What the plan decides.
    module.inline_in.reset();
    module.layers_per_stage.clear();
    module.chunks = 1;
    layers.emplace(module.name, module);
    if (module.name != sink) encoders.push_back(module.name);
  }
  for (const EdgeConfig& edge : config.edges) {
    if (edge.to == sink) continue;
    throw LayoutError("edge " + edge.from + ">" + edge.to +
                      ": a plan is made for modules that feed \"" + sink + "\" directly");
  }
  constexpr std::size_t kMostEncoders = 8;
  if (encoders.size() > kMostEncoders) {
    throw LayoutError("a plan is made for at most 8 encoders, got " +
                      std::to_string(encoders.size()));
  }
  most_bytes = MostBytesOn(devices.main);
}

double SearchJob::MostBytesOn(const DeviceModel& device) const {
  return device.memory_bytes > 0.0 ? device.memory_bytes * (1.0 - limits.reserve)
                                   : std::numeric_limits<double>::infinity();
}

const ModuleConfig& SearchJob::Sink() const { return FindModule(config, sink); }

const ModuleConfig& SearchJob::Encoder(std::size_t encoder) const {
  return FindModule(config, encoders[encoder]);
}

Config SearchJob::With(const std::string& module, const Layout& layout, const Recompute& recompute,
                       unsigned inlined) const {
  Config with = config;
  for (ModuleConfig& each : with.modules) {
    if (each.name == module) {
      each.layout = layout;
      each.layout.pp = each.layout.dp = 1;
      each.recompute = recompute;
    }
    const auto encoder =
        static_cast<std::size_t>(std::ranges::find(encoders, each.name) - encoders.begin());
    if (encoder < encoders.size() && (inlined >> encoder & 1U) != 0U) each.inline_in = sink;
  }
  return with;
}

bool SearchJob::IsLegal(const ModuleConfig& module) const {
  const Layout& layout = module.layout;
  if (!WhyNoExperts(layout).empty() || layout.stage_ranks() % layout.expert_group() != 0) {
    return false;
  }
  const std::int64_t instances = module.optimizer.instances.value_or(config.optimizer.instances);
  return layout.num_holders() % instances == 0;
}

}  // namespace troupe
