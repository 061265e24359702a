#include "cli/trace/trace.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "app/run_directory.hpp"

namespace troupe {

CLI::App* AddRunVerb(CLI::App& trace, const std::string& name, const std::string& help,
                     std::string& run) {
  auto* verb = trace.add_subcommand(
      name, help + "\nExit code: 0 done, 1 the trace cannot be read, 2 wrong arguments.");
  verb->add_option(
          "RUN", run,
          "run directory, which `troupe train` makes in runs/; runs/latest, or NAME for the\n"
          "newest runs/NAME-TIME")
      ->required()
      ->transform(FindRun);
  return verb;
}

void SetAction(CLI::App& verb, Command& command, std::function<int()> action) {
  SetCommand(verb, command, [name = verb.get_name(), action = std::move(action)] {
    try {
      return action();
    } catch (const std::invalid_argument& e) {
      std::cerr << "troupe trace " << name << ": " << e.what() << '\n';
    } catch (const std::out_of_range& e) {
      std::cerr << "troupe trace " << name << ": " << e.what() << '\n';
    }
    return static_cast<int>(kExitBadInput);
  });
}

void AddStep(CLI::App& verb, std::int64_t& step, const std::string& help) {
  verb.add_option("--step", step, help)->check(CLI::PositiveNumber);
}

const StepSpan& StepOrLast(const Steps& steps, std::int64_t step) {
  return step == 0 && !steps.all().empty() ? steps.all().back() : steps.Of(step);
}

void AddSteps(CLI::App& verb, std::string& steps) {
  verb.add_option("--steps", steps, "only these, as 12 or 10-12")->type_name("A-B");
}

std::optional<StepRange> RangeOf(const std::string& steps) {
  return steps.empty() ? std::nullopt : std::optional(ParseSteps(steps));
}

void AddChoice(CLI::App& verb, const std::string& name, const std::vector<std::string>& choices,
               std::string& chosen) {
  std::string words;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    words += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
  }
  const auto check = [=](const std::string& word) {
    const bool known = std::find(choices.begin(), choices.end(), word) != choices.end();
    return known ? std::string() : "expected " + words + ", got \"" + word + "\"";
  };
  verb.add_option(name, chosen, words + " (default: " + chosen + ")")
      ->check(CLI::Validator(check, ""))
      ->type_name("FORMAT");
}

std::string Write(const Table& table, const std::string& format) {
  if (format == "json") return ToJson(table);
  return format == "csv" ? ToCsv(table) : ToText(table);
}

void AddTrace(CLI::App& app, Command& command) {
  auto* trace = app.add_subcommand(
      "trace",
      "Analyze a run message by message: where its time went, and why.\n"
      "Works while it runs, and after a crash. Steps count from 1, as the console\n"
      "prints them; microbatches from 0, from the start of the run.\n"
      "Exit code: 0 done, 1 the trace cannot be read, 2 wrong arguments.");
  trace->require_subcommand(1);
  AddTraceSummary(*trace, command);
  AddTraceOrder(*trace, command);
  AddTraceMessages(*trace, command);
  AddTraceWhy(*trace, command);
  AddTraceCritical(*trace, command);
  AddTraceDiff(*trace, command);
  AddTraceSql(*trace, command);
  AddTraceExport(*trace, command);
}

}  // namespace troupe
