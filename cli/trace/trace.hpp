// The verbs of `troupe trace`, one file each, and what they share.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "trace/analyze/order.hpp"
#include "trace/analyze/steps.hpp"
#include "trace/analyze/table.hpp"
#include "transport/failure.hpp"

namespace troupe {

/// What the processes of a run have noted, ready for questions. Stays where it is made: its parts
/// point into each other.
struct OpenedTrace {
  /// Throws std::invalid_argument when `run_directory` is none, std::runtime_error when what is in
  /// it cannot be read.
  explicit OpenedTrace(const std::string& run_directory);
  OpenedTrace(const OpenedTrace&) = delete;
  OpenedTrace& operator=(const OpenedTrace&) = delete;

  std::string directory;
  RunTrace trace;
  TraceIndex index;
  Steps steps;
};

/// What the stages of a run decide by: with the credits of its resolved.toml, or, if that cannot be
/// read, without.
RuleInputs RuleOfRun(const OpenedTrace& run);

/// Why the run failed, as its console said it, and whose doings explain it; empty: it did not, or
/// it was killed. Its kind is not kept.
Failure CauseOf(const std::string& run_directory);

/// --step N; `step` stays as it is where it is not given.
void AddStep(CLI::App& verb, std::int64_t& step, const std::string& help);
/// Of step 0 the last that has ended. Throws as Steps::Of does.
const StepSpan& StepOrLast(const Steps& steps, std::int64_t step);

/// --steps A-B, as text for RangeOf.
void AddSteps(CLI::App& verb, std::string& steps);
/// Nothing of an empty text: all steps. Throws as ParseSteps does.
std::optional<StepRange> RangeOf(const std::string& steps);

/// An option that is one of `choices`; `chosen` holds the default, and then what was said.
void AddChoice(CLI::App& verb, const std::string& name, const std::vector<std::string>& choices,
               std::string& chosen);
inline const std::vector<std::string> kTableFormats = {"table", "json", "csv"};
std::string Write(const Table& table, const std::string& format);

/// Adds `name` to `trace`, with RUN as its first argument. Mistakes in what was asked for
/// (std::invalid_argument, std::out_of_range) become one line and exit code 2.
CLI::App* AddRunVerb(CLI::App& trace, const std::string& name, const std::string& help,
                     std::string& run);
/// What runs when `verb` is on the command line.
void SetAction(CLI::App& verb, Command& command, std::function<int()> action);

void AddTraceSummary(CLI::App& trace, Command& command);
void AddTraceOrder(CLI::App& trace, Command& command);
void AddTraceMessages(CLI::App& trace, Command& command);
void AddTraceWhy(CLI::App& trace, Command& command);
void AddTraceCritical(CLI::App& trace, Command& command);
void AddTraceDiff(CLI::App& trace, Command& command);
void AddTraceSql(CLI::App& trace, Command& command);
void AddTraceExport(CLI::App& trace, Command& command);

}  // namespace troupe
