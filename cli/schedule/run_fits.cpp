#include "cli/schedule/run_fits.hpp"

#include <cstdint>

namespace troupe {
namespace {

/// "language has 2 stages there, 4 here"; `before` and `after` stand around the first number.
std::string Differs(const std::string& module, const char* before, const char* after,
                    std::int64_t there, std::int64_t here) {
  if (there == here) return "";
  return module + " has " + before + std::to_string(there) + after + " there, " +
         std::to_string(here) + " here";
}

/// What a replica of it works on in one microbatch.
std::int64_t SamplesOf(const Config& config, const ModuleConfig& module) {
  return config.samples_per_microbatch() / module.layout.dp;
}

std::string WhyOtherTimes(const Config& run, const ModuleConfig& there, const Config& wanted,
                          const ModuleConfig& here) {
  const std::string& name = here.name;
  std::string why = Differs(name, "tp ", "", there.layout.tp, here.layout.tp);
  if (why.empty()) why = Differs(name, "", " stages", there.num_stages(), here.num_stages());
  if (why.empty()) {
    why = Differs(name, "", " samples per replica and microbatch", SamplesOf(run, there),
                  SamplesOf(wanted, here));
  }
  if (!why.empty()) return why;
  if (there.kind != here.kind) return name + " is of another kind there";
  if (there.vit != here.vit || there.llama != here.llama) {
    return name + " has other sizes there";
  }
  if (there.layers_per_stage != here.layers_per_stage) {
    return name + " has other layers_per_stage there";
  }
  if (there.frozen != here.frozen)
    return name + (here.frozen ? " trains" : " is frozen") + " there";
  return there.inline_in != here.inline_in ? name + " runs elsewhere there" : "";
}

}  // namespace

std::string WhyOtherTimes(const Config& run, const Config& wanted) {
  for (const ModuleConfig& here : wanted.modules) {
    const ModuleConfig* const there = run.Find(here.name);
    if (there == nullptr) return "it has no module " + here.name;
    const std::string why = WhyOtherTimes(run, *there, wanted, here);
    if (!why.empty()) return why;
  }
  return "";
}

}  // namespace troupe
