#include "cli/trace/trace.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <stdexcept>

#include "app/run_directory.hpp"
#include "layout/text.hpp"
#include "trace/analyze/critical.hpp"
#include "trace/analyze/messages.hpp"
#include "trace/analyze/order.hpp"
#include "trace/analyze/replay.hpp"
#include "trace/analyze/summary.hpp"

namespace troupe {
namespace {

/// Returns the span of `step`, or of the last step that has ended for 0. Throws as Steps::Of does.
const StepSpan& StepOrLast(const Steps& steps, std::int64_t step) {
  return step == 0 && !steps.all().empty() ? steps.all().back() : steps.Of(step);
}

void AddTraceSummary(CLI::App& trace, Command& command) {
  struct Arguments {
    std::string run;
    std::string steps;
    bool actors = false;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* verb = AddRunVerb(
      trace, "summary",
      "Print where the time went: per stage and replica how long its devices were busy\n"
      "(computing, or ready to and without a core), did other work, waited, by cause, and\n"
      "computed nothing (bubble); the time of checkpoints; the memory of each rank's GPU; per\n"
      "edge the messages, bytes and time in mailboxes; the longest waits; gaps of the trace.",
      arguments->run);
  AddSteps(*verb, arguments->steps);
  verb->add_flag("--actors", arguments->actors,
                 "name the message that ended each wait, and the actor that sent it");
  SetAction(*verb, command, [arguments] {
    const std::optional<StepRange> range = RangeOf(arguments->steps);
    const OpenedTrace run(arguments->run);
    std::cout << Format(Summarize(run.index, run.steps.In(range)), run.index, run.steps,
                        arguments->actors ? Detail::kActors : Detail::kPlain);
    return static_cast<int>(kExitDone);
  });
}

void AddTraceOrder(CLI::App& trace, Command& command) {
  struct Arguments {
    std::string run;
    std::int64_t step = 0;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* verb = AddRunVerb(
      trace, "order",
      "Print the passes of each stage in a step (F forward, B backward of a microbatch of\n"
      "the step), next to the order that its rule gives if messages take no time and passes\n"
      "last as long as in the step on average. Differences are marked. The last line has the\n"
      "simulated time of the step with its measured durations.",
      arguments->run);
  AddStep(*verb, arguments->step, "training step (default: the last that has ended)");
  SetAction(*verb, command, [arguments] {
    const OpenedTrace run(arguments->run);
    std::cout << DescribeGaps(run.trace);
    const StepSpan& span = StepOrLast(run.steps, arguments->step);
    const RuleInputs rule = RuleOfRun(run);
    const OrderComparison comparison = CompareOrders(run.index, span.round, rule);
    std::cout << "step " << span.step << '\n'
              << Format(comparison, run.trace)
              << Format(ReplayStep(run.index, span.round, rule, comparison));
    return static_cast<int>(kExitDone);
  });
}

void AddTraceMessages(CLI::App& trace, Command& command) {
  struct Arguments {
    std::string run;
    MessageFilter filter;
    std::int64_t step = 0;
    std::string format = "table";
  };
  auto arguments = std::make_shared<Arguments>();
  auto* verb = AddRunVerb(
      trace, "messages",
      "List messages by the time at which they were sent (ms since the trace began), with\n"
      "the time on the way, in the mailbox, and in the handler; `cause` is the message\n"
      "whose handling sent it. A missing time is of an event that has not happened.",
      arguments->run);
  verb->add_option("--actor", arguments->filter.actor,
                   "only from or to actors whose name contains this, as language.s1")
      ->type_name("A");
  AddStep(*verb, arguments->step, "only of this training step");
  verb->add_option("--type", arguments->filter.type, "only of this type, as Activation")
      ->type_name("T");
  AddChoice(*verb, "--format", kTableFormats, arguments->format);
  verb->add_option("--limit", arguments->filter.limit, "only the first N")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  SetAction(*verb, command, [arguments] {
    const OpenedTrace run(arguments->run);
    if (arguments->step != 0) arguments->filter.step = arguments->step;
    const FoundMessages found = FindMessages(run.index, run.steps, arguments->filter);
    std::cout << Write(found.table, arguments->format);
    if (found.found > found.table.rows.size()) {
      std::cerr << "troupe trace messages: the first " << found.table.rows.size() << " of "
                << found.found << '\n';
    }
    return static_cast<int>(kExitDone);
  });
}

void AddTraceCritical(CLI::App& trace, Command& command) {
  struct Arguments {
    std::string run;
    std::int64_t step = 0;
    double fold_ms = 0.1;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* verb = AddRunVerb(
      trace, "critical",
      "Follow the end of a step back to its beginning: through the work that ended last,\n"
      "the message that started it, the handler that sent that, and so on. This path\n"
      "determines the length of the step; its pieces add up to the step. Shares:\n"
      "compute (devices), boundary (leaders, and rows on their way), queueing (in\n"
      "mailboxes), messages (all other actors, and ways between them), checkpoint (where one\n"
      "was written before the step's first pass).",
      arguments->run);
  AddStep(*verb, arguments->step, "training step (default: the last that has ended)");
  verb->add_option("--fold", arguments->fold_ms,
                   "neighbours shorter than this become one line; 0 shows all")
      ->type_name("MS")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  SetAction(*verb, command, [arguments] {
    const OpenedTrace run(arguments->run);
    std::cout << DescribeGaps(run.trace);
    const StepSpan& span = StepOrLast(run.steps, arguments->step);
    std::cout << Format(CriticalPathOf(run.index, span), run.index,
                        std::llround(arguments->fold_ms * 1e6));
    return static_cast<int>(kExitDone);
  });
}

}  // namespace

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

void AddSteps(CLI::App& verb, std::string& steps) {
  verb.add_option("--steps", steps, "only these, as 12 or 10-12")->type_name("A-B");
}

std::optional<StepRange> RangeOf(const std::string& steps) {
  return steps.empty() ? std::nullopt : std::optional(ParseSteps(steps));
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
      "prints them; microbatches from 0 in their step.\n"
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
