// Selects messages of a trace, as a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "trace/analyze/steps.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {

struct MessageFilter {
  std::string actor;                 ///< part of the name of sender or receiver; empty: any
  std::optional<std::int64_t> step;  ///< training step
  std::string type;                  ///< "RunForward": to a device or to a set of devices
  std::size_t limit = 0;             ///< maximum number of rows; 0: all
};

struct FoundMessages {
  Table table;            ///< by the time of sending
  std::size_t found = 0;  ///< number of rows without the limit
};

/// Throws std::out_of_range for a step that is not in the trace, std::invalid_argument for an
/// unknown actor or type, with a list of known ones.
FoundMessages FindMessages(const TraceIndex& index, const Steps& steps,
                           const MessageFilter& filter);

/// Actors whose name contains `part`, case-sensitive. Throws as above if there is none.
std::vector<int> ActorsNamed(const RunTrace& trace, const std::string& part);

}  // namespace troupe
