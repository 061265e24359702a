// The messages of a trace that somebody asks for, as a table.
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
  std::string type;                  ///< "RunForward": to one device, and to a set of them
  std::size_t limit = 0;             ///< at most that many; 0: all
};

struct FoundMessages {
  Table table;            ///< by the time at which they were sent
  std::size_t found = 0;  ///< rows there would be without a limit
};

/// Throws std::out_of_range for a step that is not in the trace, std::invalid_argument for an actor
/// or type that nothing in the trace is called, naming some that are.
FoundMessages FindMessages(const TraceIndex& index, const Steps& steps,
                           const MessageFilter& filter);

/// Actors whose name contains `part`, case counts. Throws as above when there is none.
std::vector<int> ActorsNamed(const RunTrace& trace, const std::string& part);

}  // namespace troupe
