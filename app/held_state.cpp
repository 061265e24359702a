#include "app/held_state.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "checkpoint/manifest.hpp"
#include "files/sha256.hpp"

namespace troupe {
namespace {

std::set<std::string> FilesOf(const JobPlan& plan) {
  std::set<std::string> names;
  for (const auto& [rank, set] : plan.lock_steps()) {
    for (const auto& [stage, shard] : plan.ShardsOn(rank)) names.insert(ShardFileName(shard));
  }
  return names;
}

}  // namespace

std::vector<HeldState> HeldBy(const HeldFiles& held) {
  std::vector<HeldState> states;
  for (HeldCheckpoint& checkpoint : held.Checkpoints()) {
    HeldState state{.folder = std::move(checkpoint.folder), .files = std::move(checkpoint.files)};
    if (!checkpoint.manifest.empty()) {
      state.manifest_sum = Sha256Of(checkpoint.manifest);
      state.step = ParseManifest(checkpoint.manifest).run.step;
    }
    states.push_back(std::move(state));
  }
  return states;
}

std::optional<HeldState> NewestHeld(const std::vector<Hello>& members, const JobPlan& plan) {
  std::map<std::string, std::set<std::string>> files;  // by folder
  std::optional<HeldState> newest;
  for (const Hello& member : members) {
    for (const HeldState& state : member.held) {
      files[state.folder].insert(state.files.begin(), state.files.end());
    }
  }
  const std::set<std::string> needed = FilesOf(plan);
  for (const Hello& member : members) {
    for (const HeldState& state : member.held) {
      const bool whole =
          !state.manifest_sum.empty() && std::ranges::includes(files.at(state.folder), needed);
      if (whole && (!newest || state.step > newest->step)) newest = state;
    }
  }
  return newest;
}

}  // namespace troupe
