#include "cli/restart.hpp"

#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"

namespace troupe {

std::string WhereAnew(const std::string& directory, std::int64_t every) {
  if (const auto newest = NewestCheckpoint(directory)) {
    return "after step " + std::to_string(ReadManifest(*newest)->step);
  }
  return std::string("from the beginning: there is no checkpoint ") +
         (every == 0 ? "(checkpoint.every = 0)" : "yet");
}

}  // namespace troupe
