// The common parts of the verbs of `troupe trace`, and the verbs that have separate files.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/opened_trace.hpp"
#include "cli/commands.hpp"
#include "trace/analyze/order.hpp"
#include "trace/analyze/steps.hpp"
#include "trace/analyze/table.hpp"
#include "transport/failure.hpp"

namespace troupe {

/// Adds --step N. Without it `step` is unchanged.
void AddStep(CLI::App& verb, std::int64_t& step, const std::string& help);

/// Adds --steps A-B, as text for RangeOf.
void AddSteps(CLI::App& verb, std::string& steps);
/// Returns nothing, for all steps, if the text is empty. Throws as ParseSteps does.
std::optional<StepRange> RangeOf(const std::string& steps);

inline const std::vector<std::string> kTableFormats = {"table", "json", "csv"};
std::string Write(const Table& table, const std::string& format);

/// Adds the verb `name` to `trace`, with RUN as its first argument.
CLI::App* AddRunVerb(CLI::App& trace, const std::string& name, const std::string& help,
                     std::string& run);
/// Makes `action` the command when `verb` is on the command line. std::invalid_argument and
/// std::out_of_range, for wrong arguments, become one line and exit code 2.
void SetAction(CLI::App& verb, Command& command, std::function<int()> action);

void AddTraceWhy(CLI::App& trace, Command& command);
void AddTraceDiff(CLI::App& trace, Command& command);
void AddTraceSql(CLI::App& trace, Command& command);
void AddTraceExport(CLI::App& trace, Command& command);

}  // namespace troupe
