#include "schedule/drawing.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "layout/text.hpp"
#include "schedule/lint.hpp"

namespace troupe {
namespace {

/// "language.s0" and ".s2" become "language.s0,s2".
std::string RowName(const std::string& before, const std::string& stage) {
  return before.empty() ? stage : before + "," + stage.substr(stage.rfind('.') + 1);
}

/// Writes one pass over `line` from column `begin` to `end`, at least one character.
void PutPass(std::string& line, const DrawnPass& drawn, std::size_t begin, std::size_t end) {
  const Pass& pass = drawn.timed.pass;
  const bool odd = drawn.chunk % 2 == 1;
  const char fill = pass.kind == PassKind::kForward    ? (odd ? '.' : '-')
                    : pass.kind == PassKind::kBackward ? (odd ? ':' : '=')
                                                       : '~';
  const std::string number = std::to_string(pass.unit);
  const std::size_t width = std::max<std::size_t>(end - begin, 1);
  for (std::size_t i = 0; i < width && begin + i < line.size(); ++i) {
    const bool fits = number.size() <= width;
    line[begin + i] = fits && i < number.size() ? number[i] : fill;
  }
}

}  // namespace

Drawing DrawingOf(const StageGraph& graph, const Schedule& schedule, const Simulation& simulation,
                  std::string title) {
  Drawing drawing{std::move(title), simulation.makespan_ns, {}};
  std::map<int, DrawnRow> rows;
  std::map<int, int> chunks;
  std::map<int, std::int64_t> busy;
  for (std::size_t s = 0; s < simulation.stages.size(); ++s) {
    const auto stage = static_cast<int>(s);
    const int device = schedule.devices.empty() ? stage : schedule.devices[s];
    DrawnRow& row = rows[device];
    row.name = RowName(row.name, graph.StageName(stage));
    const int chunk = chunks[device]++;
    for (const TimedPass& timed : simulation.stages[s]) {
      row.passes.push_back({stage, chunk, timed});
      busy[device] += timed.end_ns - timed.begin_ns;
    }
  }
  for (auto& [device, row] : rows) {
    std::ranges::stable_sort(row.passes, {}, [](const DrawnPass& p) { return p.timed.begin_ns; });
    const auto first = std::ranges::find_if(
        row.passes, [](const DrawnPass& p) { return p.timed.pass.kind != PassKind::kForward; });
    row.warmup_ns = first == row.passes.end() ? 0 : first->timed.begin_ns;
    const auto all = static_cast<double>(std::max<std::int64_t>(simulation.makespan_ns, 1));
    row.bubble = 1.0 - static_cast<double>(busy[device]) / all;
    drawing.rows.push_back(std::move(row));
  }
  return drawing;
}

std::string ToText(const Drawing& drawing, int width) {
  std::size_t name_width = 6;
  for (const DrawnRow& row : drawing.rows) name_width = std::max(name_width, row.name.size());
  const int left = width - static_cast<int>(name_width) - 10;  // two gaps, "100.0%"
  const auto columns = static_cast<std::size_t>(std::max(left, 20));
  const auto makespan = static_cast<double>(std::max<std::int64_t>(drawing.makespan_ns, 1));
  const auto column_of = [&](std::int64_t ns) {
    const double share = static_cast<double>(ns) / makespan;
    return std::min(static_cast<std::size_t>(share * static_cast<double>(columns) + 0.5), columns);
  };
  std::string text = drawing.title + "\n";
  for (const DrawnRow& row : drawing.rows) {
    std::string line(columns, ' ');
    for (const DrawnPass& pass : row.passes) {
      PutPass(line, pass, column_of(pass.timed.begin_ns), column_of(pass.timed.end_ns));
    }
    std::string name = row.name;
    name.resize(name_width, ' ');
    const std::string bubble = Formatted("%.1f%%", 100.0 * row.bubble);
    text += name + "  " + line + "  " +
            std::string(6 - std::min<std::size_t>(6, bubble.size()), ' ') + bubble + "\n";
  }
  std::string last(columns, ' ');
  last[0] = '0';
  const std::string end = Formatted("%.3g ms", makespan * 1e-6);
  last.replace(columns - std::min(columns, end.size()), end.size(), end);
  text += std::string(name_width + 2, ' ') + last + "  bubble\n";
  text += std::string(name_width + 2, ' ') +
          "- forward  = backward  ~ weights, each after its microbatch\n";
  const bool chunks = std::ranges::any_of(drawing.rows, [](const DrawnRow& row) {
    return std::ranges::any_of(row.passes, [](const DrawnPass& p) { return p.chunk > 0; });
  });
  if (chunks) {
    text += std::string(name_width + 2, ' ') + ". and : in every second stage of a row\n";
  }
  return text;
}

ActionTable ToTable(const Drawing& drawing, const StageGraph& graph) {
  ActionTable table;
  std::map<int, bool> split;
  for (const DrawnRow& row : drawing.rows) {
    for (const DrawnPass& pass : row.passes) {
      if (pass.timed.pass.kind == PassKind::kWeight) split[pass.stage] = true;
    }
  }
  for (const DrawnRow& row : drawing.rows) {
    auto& actions = table.rows.emplace_back();
    for (const DrawnPass& pass : row.passes) {
      const PassKind kind = pass.timed.pass.kind;
      const ActionKind whole = split[pass.stage] ? ActionKind::kInput : ActionKind::kBackward;
      const ActionKind action = kind == PassKind::kForward    ? ActionKind::kForward
                                : kind == PassKind::kBackward ? whole
                                                              : ActionKind::kWeight;
      actions.push_back({action, pass.stage, pass.timed.pass.unit, 0});
    }
  }
  bool chain = true;
  for (const StageLink& link : graph.links()) {
    chain = chain && link.to == link.from + 1;
    table.links.emplace_back(link.from, link.to);
  }
  if (chain && table.links.size() + 1 == graph.stages().size()) table.links.clear();
  for (int stage = 0; stage < static_cast<int>(graph.stages().size()); ++stage) {
    table.names[stage] = graph.StageName(stage);
  }
  AlignColumns(table);
  return table;
}

}  // namespace troupe
