#include "app/held_state.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "checkpoint/manifest.hpp"
#include "files/sha256.hpp"

namespace troupe {
namespace {

/// The names of all files that a manifest lists, ascending.
std::vector<std::string> FilesOf(const CheckpointManifest& manifest) {
  std::vector<std::string> names;
  for (const CheckpointFile& file : manifest.files) names.push_back(file.name);
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::vector<HeldState> HeldBy(const HeldFiles& held) {
  std::vector<HeldState> states;
  for (HeldCheckpoint& checkpoint : held.Checkpoints()) {
    HeldState state{.folder = std::move(checkpoint.folder), .files = std::move(checkpoint.files)};
    if (!checkpoint.manifest.empty()) {
      state.manifest_sum = Sha256Of(checkpoint.manifest);
      const CheckpointManifest manifest = ParseManifest(checkpoint.manifest);
      state.step = manifest.run.step;
      state.all_files = FilesOf(manifest);
    }
    states.push_back(std::move(state));
  }
  return states;
}

std::optional<HeldState> NewestHeld(const std::vector<Hello>& members) {
  std::map<std::string, std::set<std::string>> files;  // by folder
  std::optional<HeldState> newest;
  for (const Hello& member : members) {
    for (const HeldState& state : member.held) {
      files[state.folder].insert(state.files.begin(), state.files.end());
    }
  }
  for (const Hello& member : members) {
    for (const HeldState& state : member.held) {
      const bool is_whole = !state.manifest_sum.empty() &&
                            std::ranges::includes(files.at(state.folder), state.all_files);
      if (is_whole && (!newest || state.step > newest->step)) newest = state;
    }
  }
  return newest;
}

}  // namespace troupe
