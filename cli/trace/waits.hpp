// Reads the waits of actors from the files that a stall or SIGUSR1 writes next to the traces.
#pragma once

#include <string>
#include <vector>

#include "transport/wait.hpp"

namespace troupe {

/// Parses the output of ToJson(actors) (actors/waits_file.hpp). Throws std::invalid_argument with
/// one line about the first fault: malformed JSON, a wrong type, no actors.
std::vector<ActorWaits> ParseWaits(const std::string& text);

struct WaitsFile {
  std::string path;
  bool exists = false;
  std::vector<ActorWaits> actors;
  std::string
      problem;  ///< one line, path first: why there are no `actors`; empty: nothing is wrong
};

/// Reads the file `name` next to the traces of the run's last start. Throws std::runtime_error if
/// there is no such directory.
WaitsFile ReadWaits(const std::string& run_directory, const std::string& name);

}  // namespace troupe
