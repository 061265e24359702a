#include "cli/plan_report.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "layout/text.hpp"
#include "plan/cost/account.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

std::string LayoutText(const Config& config, const ModuleConfig& module) {
  if (module.inline_in) return "in " + *module.inline_in;
  std::string text = ToString(module.layout);
  if (!module.offload_activations.none()) text += ", offload";
  for (const EdgeConfig& edge : config.edges) {
    if (edge.from == module.name && PlacementOfEdge(config, edge) == Placement::kColocated) {
      text += ", shared";
      if (config.schedule.window != 0) {
        text += ", window " + std::to_string(config.schedule.window);
      }
    }
  }
  return text;
}

std::string ScheduleText(const ScheduleConfig& schedule) {
  const std::string kind = ToString(schedule.kind);
  return schedule.kind == ScheduleKind::kInterleaved ? kind + ":" + std::to_string(schedule.chunks)
                                                     : kind;
}

std::string BatchText(const ScheduleConfig& schedule) {
  return std::to_string(schedule.microbatches) + " x " + std::to_string(schedule.micro_batch_size);
}

/// "64", or "64 + 8" with devices of other kinds.
std::string DevicesText(const Plan& plan) {
  int main = plan.job.ranks;
  std::string text;
  for (const int ranks : plan.own_ranks) {
    main -= ranks;
    text += " + " + std::to_string(ranks);
  }
  return std::to_string(main) + text;
}

/// Steps below it are shown in microseconds.
constexpr double kShortStep = 0.01;

std::string DifferenceText(double seconds, bool is_short) {
  return Formatted(is_short ? "%+.3f" : "%+.1f", seconds * 1e3);
}

/// A line of the accounts of two plans.
struct ComparedLine {
  std::string what;
  double own_s = 0.0;
  double their_s = 0.0;
  double more_s() const { return own_s - their_s; }
};

/// The lines of `own`, next to those of another account.
std::vector<ComparedLine> Compared(const Plan& own, const std::vector<AccountLine>& others) {
  std::vector<ComparedLine> lines;
  for (const AccountLine& line : AccountOf(JobPlan(own.config), own.cost)) {
    lines.push_back({line.what, line.seconds, 0.0});
  }
  // What only the other one spends stands after the line that precedes it there.
  auto place = lines.begin();
  for (const AccountLine& line : others) {
    auto same = std::ranges::find(lines, line.what, &ComparedLine::what);
    if (same == lines.end()) same = lines.insert(place, {line.what, 0.0, 0.0});
    same->their_s = line.seconds;
    place = same + 1;
  }
  return lines;
}

/// "with 8 GPUs 10672.7 ms, 0.1% more: vision in language, language dp8, 1f1b, 8 x 4"
std::string PlanLine(const Plan& plan, const Plan& best) {
  const double longer = plan.cost.step_s / best.cost.step_s - 1.0;
  std::string text = "with " + Counted(plan.job.ranks, "GPU") + " " + MsText(plan.cost.step_s) +
                     " ms, " + Formatted("%.1f", std::abs(longer) * 100.0) +
                     (longer < 0.0 ? "% less:" : "% more:");
  for (const ModuleConfig& module : plan.config.modules) {
    text += " " + module.name + " " + LayoutText(plan.config, module) + ",";
  }
  return text + " " + ScheduleText(plan.config.schedule) + ", " + BatchText(plan.config.schedule) +
         "\n";
}

/// The shares of the peak, by module and projector.
std::string UseText(const std::vector<std::pair<std::string, const Plan*>>& plans) {
  Table table{{"MFU"}, {}};
  for (const auto& [name, plan] : plans) table.columns.push_back(name);
  const auto add = [&](const std::string& part, const auto& share_of) {
    auto& row = table.rows.emplace_back();
    row.emplace_back(part);
    for (const auto& [name, plan] : plans) row.push_back(Cell::Number(Percent(share_of(*plan))));
  };
  for (const PartUtilisation& part : plans.front().second->use.parts) {
    add(part.name, [&](const Plan& plan) {
      return std::ranges::find(plan.use.parts, part.name, &PartUtilisation::name)->mfu;
    });
  }
  if (table.rows.empty()) return "";
  add("all", [](const Plan& plan) { return plan.use.mfu; });
  return "\n" + ToText(table);
}

}  // namespace

std::string MsText(double seconds) {
  return Formatted(seconds < kShortStep ? "%.3f" : "%.1f", seconds * 1e3);
}

std::vector<std::string> LayoutColumns(const Config& config) {
  std::vector<std::string> columns;
  for (const ModuleConfig& module : config.modules) columns.push_back(module.name);
  columns.insert(columns.end(), {"schedule", "batch"});
  return columns;
}

std::vector<std::string> LayoutCells(const Config& config) {
  std::vector<std::string> cells;
  for (const ModuleConfig& module : config.modules) cells.push_back(LayoutText(config, module));
  cells.push_back(ScheduleText(config.schedule));
  cells.push_back(BatchText(config.schedule));
  return cells;
}

std::string TableOf(const std::vector<Plan>& plans, const std::optional<Plan>& now) {
  Table table{{"#", "step ms", "samples/s", "GPUs", "MFU", "GB", "bubble", "sending"}, {}};
  const auto layouts = LayoutColumns(plans.front().config);
  table.columns.insert(table.columns.end(), layouts.begin(), layouts.end());
  const auto add = [&](const std::string& number, const Plan& plan) {
    const auto batch = static_cast<double>(plan.config.global_batch());
    std::vector<Cell> row = {number,
                             Cell::Number(MsText(plan.cost.step_s)),
                             Cell::Number(Formatted(batch < plan.cost.step_s ? "%.3f" : "%.1f",
                                                    batch / plan.cost.step_s)),
                             Cell::Number(DevicesText(plan)),
                             Cell::Number(plan.use.mfu > 0.0 ? Percent(plan.use.mfu) : "-"),
                             Cell::Number(Formatted("%.1f", plan.bytes * 1e-9)),
                             Cell::Number(Percent(plan.bubble)),
                             Cell::Number(Percent(plan.sending))};
    for (const std::string& cell : LayoutCells(plan.config)) row.emplace_back(cell);
    table.rows.push_back(std::move(row));
  };
  int number = 0;
  for (const Plan& plan : plans) add(std::to_string(++number), plan);
  if (now) add("now", *now);
  return ToText(table);
}

std::string ExplanationOf(const std::vector<Plan>& plans, std::size_t number, std::size_t against) {
  const Plan& plan = plans.at(number - 1);
  const Plan* const other = against > 0 ? &plans.at(against - 1) : nullptr;
  Table table{
      {"busiest devices of " + plan.config.Sink().name + ", ms", "#" + std::to_string(number)}, {}};
  if (other != nullptr) {
    table.columns.push_back("#" + std::to_string(against));
    table.columns.emplace_back("difference");
  }
  const bool is_short = plan.cost.step_s < kShortStep;
  const auto add = [&](const std::string& what, double own_s, double their_s) {
    const char* const format = is_short ? "%.3f" : "%.1f";
    auto& row = table.rows.emplace_back();
    row = {what, Cell::Number(Formatted(format, own_s * 1e3))};
    if (other == nullptr) return;
    row.push_back(Cell::Number(Formatted(format, their_s * 1e3)));
    row.push_back(Cell::Number(DifferenceText(own_s - their_s, is_short)));
  };
  const auto theirs = other != nullptr ? AccountOf(JobPlan(other->config), other->cost)
                                       : std::vector<AccountLine>();
  for (const ComparedLine& line : Compared(plan, theirs)) add(line.what, line.own_s, line.their_s);
  add("step", plan.cost.step_s, other != nullptr ? other->cost.step_s : 0.0);
  std::vector<std::pair<std::string, const Plan*>> compared = {{table.columns[1], &plan}};
  if (other != nullptr) compared.emplace_back(table.columns[2], other);
  return "\n" + ToText(table) + UseText(compared);
}

std::string ReasonsOf(const std::vector<Plan>& plans, const std::optional<Plan>& now) {
  const Plan& best = plans.front();
  const bool is_short = best.cost.step_s < kShortStep;
  Table table{{"#", "ms longer than 1", "most of it"}, {}};
  const auto accounts = AccountOf(JobPlan(best.config), best.cost);
  const auto add = [&](const std::string& number, const Plan& plan) {
    std::vector<ComparedLine> lines = Compared(plan, accounts);
    std::ranges::stable_sort(lines, std::greater(),
                             [](const ComparedLine& line) { return std::abs(line.more_s()); });
    constexpr std::size_t kReasons = 3;
    lines.resize(std::min(lines.size(), kReasons));
    // Differences that would be printed as 0 are left out.
    std::erase_if(lines, [&](const ComparedLine& line) {
      return std::abs(line.more_s()) < (is_short ? 0.5e-6 : 0.5e-4);
    });
    const auto text = [&](const ComparedLine& line) {
      return line.what + " " + DifferenceText(line.more_s(), is_short);
    };
    const std::string more = DifferenceText(plan.cost.step_s - best.cost.step_s, is_short);
    table.rows.push_back({number, Cell::Number(more), Listed(lines, ", ", text)});
  };
  for (std::size_t i = 1; i < plans.size(); ++i) add(std::to_string(i + 1), plans[i]);
  if (now) add("now", *now);
  return table.rows.empty() ? "" : "\n" + ToText(table);
}

std::string NotesOn(const Plans& plans, std::size_t asked) {
  std::string text;
  if (plans.smaller) {
    text += PlanLine(*plans.smaller, plans.best.front());
  }
  if (plans.best.size() < asked) {
    text += "no other plan that fits is estimated within " +
            Formatted("%.0f", (kHandedOver - 1.0) * 100.0) + "% of the best\n";
    if (plans.twins > 0) {
      text += "left out: " + Counted(static_cast<int>(plans.twins), "plan") +
              " as fast as one of these, with samples cut over cp in place of dp\n";
    }
  }
  return text.empty() ? text : "\n" + text;
}

std::string NothingFitsText(const std::string& path, const Config& config, int gpus,
                            const JobDevices& devices) {
  const auto text = [](int number, const DeviceModel& kind) {
    return Counted(number, "device") + Formatted(" of %.0f GB", kind.memory_bytes * 1e-9);
  };
  std::string all = text(gpus, devices.main);
  for (const auto& [module, own] : devices.own) {
    all += " with " + module + " on " + text(own.number, own.device);
  }
  return path + ": no layout of " + config.Sink().name + " fits on " + all + "\n";
}

std::string WithoutOwnText(const Plans& without, const Plan& best) {
  if (without.best.empty()) return "";
  const Plan& plan = without.best.front();
  return "\nwithout --device-of, " + PlanLine(plan, best);
}

std::string TextOf(const std::vector<NearestChange>& changes) {
  if (changes.empty()) {
    return "and neither does one on 16 times as many, on another known device, with "
           "optimizer.shard = "
           "\"data\", or in bfloat16\n";
  }
  std::vector<std::vector<std::string>> rows = {{"enough by itself", "ms per step"}};
  for (const NearestChange& change : changes) {
    rows.push_back({change.argument, MsText(change.plan.cost.step_s)});
  }
  return Columns(rows);
}

}  // namespace troupe
