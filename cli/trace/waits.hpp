// What actors waited for, from the files that a stall or a question leaves beside the traces.
#pragma once

#include <string>
#include <vector>

#include "transport/wait.hpp"

namespace troupe {

/// What ToJson(actors) has written (actors/waits_file.hpp). Throws std::invalid_argument saying in
/// one line where the text is not that: no JSON, another type than expected, nobody in it.
std::vector<ActorWaits> ParseWaits(const std::string& text);

struct WaitsFile {
  std::string path;
  bool exists = false;
  std::vector<ActorWaits> actors;
  std::string
      problem;  ///< one line, path first: why there are no `actors`; empty: nothing is wrong
};

/// The file `name` beside the traces of the run's last start. Throws std::runtime_error when there
/// is no such directory.
WaitsFile ReadWaits(const std::string& run_directory, const std::string& name);

}  // namespace troupe
