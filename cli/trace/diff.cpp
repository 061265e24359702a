#include "trace/analyze/diff.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <stdexcept>

#include "app/progress.hpp"
#include "app/run_directory.hpp"
#include "app/run_facts.hpp"
#include "cli/trace/trace.hpp"
#include "trace/analyze/summary.hpp"

namespace troupe {
namespace {

/// One of the two runs, and its speed.
struct ComparedRun {
  explicit ComparedRun(const std::string& directory)
      : run(directory),
        metrics(ReadMetrics(directory)),
        rates(RatesOf(directory, metrics)),
        summary(Summarize(run.index, run.steps.all(), 0)) {}

  /// Share of the time of all ranks in which their work had no core; negative: not known.
  double WithoutCore() const {
    const auto all_ns = static_cast<double>((summary.end_ns - summary.begin_ns) * summary.ranks);
    const std::int64_t ns = summary.cores.without_core_ns;
    return ns < 0 || all_ns <= 0 ? -1.0 : static_cast<double>(ns) / all_ns;
  }

  OpenedTrace run;
  RunMetrics metrics;
  RunRates rates;
  Summary summary;
};

/// Whether the table of layouts covers a key, which is then omitted.
bool IsOfLayout(const std::string& key) {
  return key == "cluster.ranks" || key.ends_with(".ranks") ||
         key.find(".layout.") != std::string::npos || key == "schedule.global_batch";
}

/// The differences between the configurations, as a table of before and after.
std::string Differences(const ComparedRun& before, const ComparedRun& after) {
  Table table{{"what differs", "before", "after"}, {}};
  const auto a = FactsOf(before.run.directory, {});
  const auto b = FactsOf(after.run.directory, {});
  const auto of = [](const auto& facts, const std::string& name) {
    const auto found = facts.find(name);
    return found == facts.end() ? std::string("-") : found->second;
  };
  std::map<std::string, std::string> names = a;
  names.insert(b.begin(), b.end());
  for (const auto& [name, value] : names) {
    if (of(a, name) != of(b, name)) table.rows.push_back({name, of(a, name), of(b, name)});
  }
  try {
    for (const KeyDifference& key : DifferencesOf(before.run.directory, after.run.directory)) {
      if (IsOfLayout(key.key)) continue;
      table.rows.push_back(
          {key.key, key.before.empty() ? "-" : key.before, key.after.empty() ? "-" : key.after});
    }
  } catch (const std::invalid_argument& e) {
    return std::string("the configurations cannot be compared: ") + e.what() + '\n';
  }
  return table.rows.empty() ? "the configurations are the same\n" : ToText(table);
}

std::string Change(double before, double after) {
  if (before <= 0.0 || after <= 0.0) return "";
  return Formatted("%+.1f%%", 100.0 * (after / before - 1.0));
}

std::string Speeds(const ComparedRun& before, const ComparedRun& after, const Diff& diff) {
  Table table{{"speed, medians over steps", "before", "after", "change"}, {}};
  const auto add = [&](const std::string& name, double a, double b) {
    if (a <= 0.0 && b <= 0.0) return;
    const auto text = [](double value) { return value > 0.0 ? FormatRate(value) : "-"; };
    table.rows.push_back(
        {name, Cell::Number(text(a)), Cell::Number(text(b)), Cell::Number(Change(a, b))});
  };
  table.rows.push_back({"step", Cell::Number(Duration(diff.step.before_ns)),
                        Cell::Number(Duration(diff.step.after_ns)),
                        Cell::Number(Change(static_cast<double>(diff.step.before_ns),
                                            static_cast<double>(diff.step.after_ns)))});
  const RunRates& a = before.rates;
  const RunRates& b = after.rates;
  add("tokens/s", a.tokens_per_second, b.tokens_per_second);
  add("samples/s", a.samples_per_second, b.samples_per_second);
  if (a.ranks > 0 && b.ranks > 0 && a.ranks != b.ranks) {
    add("samples/s on each rank", a.samples_per_second / a.ranks, b.samples_per_second / b.ranks);
  }
  if (before.WithoutCore() >= 0.01 || after.WithoutCore() >= 0.01) {
    const auto share = [](double value) { return Cell::Number(value < 0 ? "-" : Percent(value)); };
    table.rows.push_back(
        {"work without a core", share(before.WithoutCore()), share(after.WithoutCore()), ""});
  }
  return ToText(table);
}

std::string Difference(double before, double after) {
  return before == after ? "0" : Formatted("%+.2g", after - before);
}

/// The losses of the last step and the last evaluation that both runs have; empty if there are
/// none.
std::string Losses(const ComparedRun& before, const ComparedRun& after) {
  Table table{{"loss", "before", "after", "difference"}, {}};
  const auto add = [&](const std::string& key, const std::string& name) {
    const auto last = LastCommon(before.metrics, after.metrics, key);
    if (!last) return;
    table.rows.push_back({name + std::to_string(last->step), Cell::Number(Fixed(last->before, 4)),
                          Cell::Number(Fixed(last->after, 4)),
                          Cell::Number(Difference(last->before, last->after))});
  };
  add("loss", "of step ");
  add("held_out_loss", "held out, after step ");
  return table.rows.empty() ? "" : ToText(table) + '\n';
}

/// Samples per second if both runs record them, since batches may differ; else steps per second.
std::string VerdictOn(const ComparedRun& before, const ComparedRun& after, const Diff& diff) {
  double a = before.rates.samples_per_second;
  double b = after.rates.samples_per_second;
  const bool samples = a > 0.0 && b > 0.0;
  if (!samples) {
    a = 1.0 / static_cast<double>(std::max<std::int64_t>(diff.step.before_ns, 1));
    b = 1.0 / static_cast<double>(std::max<std::int64_t>(diff.step.after_ns, 1));
  }
  const double more = b / a - 1.0;
  constexpr double kNoise = 0.02;
  std::string text = "the second run";
  if (std::abs(more) < kNoise) return text + " is as fast as the first, within 2%\n";
  text += " runs " + Percent(std::abs(more)) + (more > 0 ? " more " : " fewer ") +
          (samples ? "samples" : "steps") + " per second";
  if (const auto* main = MainChange(diff)) {
    text += "; its steps are " + Duration(std::abs(diff.step.delta_ns())) +
            (diff.step.delta_ns() > 0 ? " longer" : " shorter") +
            (2 * std::abs(main->delta_ns()) > std::abs(diff.step.delta_ns())
                 ? ", most of it in "
                 : ", the largest part of it in ") +
            main->what + " (" + (main->delta_ns() > 0 ? "+" : "-") +
            Duration(std::abs(main->delta_ns())) + ")";
  }
  if (std::max(before.WithoutCore(), after.WithoutCore()) > 0.1) {
    text += "; ranks waited for cores, so this compares the cores as much as the layouts";
  }
  return text + '\n';
}

}  // namespace

void AddTraceDiff(CLI::App& trace, Command& command) {
  struct Arguments {
    std::string before;
    std::string after;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* verb = AddRunVerb(
      trace, "diff",
      "Compare two runs: the keys of their configurations that differ, their speeds and losses,\n"
      "a verdict, and where the extra milliseconds of a step went: the parts of the critical\n"
      "path that grew (they add up to the difference of the steps), the work and the messages\n"
      "that take longer, and the stages that wait longer. Medians over steps.",
      arguments->before);
  verb->add_option("RUN_B", arguments->after,
                   "the other run directory, for example of a slower run")
      ->required()
      ->transform(FindRun);
  SetAction(*verb, command, [arguments] {
    const ComparedRun before(arguments->before);
    const ComparedRun after(arguments->after);
    const Diff diff = Compare(before.run.index, before.run.steps, after.run.index, after.run.steps);
    std::cout << DescribeGaps(before.run.trace) << DescribeGaps(after.run.trace)
              << "before: " << before.run.directory << "\nafter:  " << after.run.directory << "\n\n"
              << Differences(before, after) << '\n'
              << Speeds(before, after, diff) << '\n'
              << Losses(before, after) << VerdictOn(before, after, diff) << Format(diff);
    return static_cast<int>(kExitDone);
  });
}

}  // namespace troupe
