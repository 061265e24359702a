#include "schedule/drawing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "layout/text.hpp"
#include "schedule/lint.hpp"

namespace troupe {
namespace {

/// Appends a stage: "language.s0" and "language.s2" become "language.s0,s2". `same`: the last one is of
/// the same module.
std::string RowName(const std::string& before, const std::string& stage, bool same) {
  if (before.empty()) return stage;
  return before + "," + (same ? stage.substr(stage.rfind('.') + 1) : stage);
}

/// Writes one pass over `line` from column `begin` to `end`, at least one character.
void PutPass(std::string& line, const DrawnPass& drawn, std::size_t begin, std::size_t end) {
  const Pass& pass = drawn.timed.pass;
  // By kind; the second of each is for every second chunk.
  static constexpr std::array kFills = {"-.", "=:", "~~"};
  const char fill = kFills.at(static_cast<std::size_t>(pass.kind))[drawn.chunk % 2];
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
  std::map<int, int> last_module;
  std::map<int, std::int64_t> busy;
  for (std::size_t s = 0; s < simulation.stages.size(); ++s) {
    const auto stage = static_cast<int>(s);
    for (const int device : schedule.DevicesOf(stage)) {
      DrawnRow& row = rows[device];
      const int module = graph.stages()[s].module;
      const auto last = last_module.find(device);
      row.name = RowName(row.name, graph.StageName(stage),
                         last != last_module.end() && last->second == module);
      last_module[device] = module;
      const int chunk = chunks[device]++;
      for (const TimedPass& timed : simulation.stages[s]) {
        row.passes.push_back({stage, chunk, timed});
        busy[device] += timed.end_ns - timed.begin_ns;
      }
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
    return std::min(static_cast<std::size_t>(std::lround(share * static_cast<double>(columns))),
                    columns);
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
  std::set<int> split;
  for (const DrawnRow& row : drawing.rows) {
    for (const DrawnPass& pass : row.passes) {
      if (pass.timed.pass.kind == PassKind::kWeight) split.insert(pass.stage);
    }
  }
  for (const DrawnRow& row : drawing.rows) {
    auto& actions = table.rows.emplace_back();
    for (const DrawnPass& pass : row.passes) {
      const PassKind kind = pass.timed.pass.kind;
      const ActionKind whole =
          split.contains(pass.stage) ? ActionKind::kInput : ActionKind::kBackward;
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

namespace {

constexpr double kRowHeight = 26.0;
constexpr double kTop = 44.0;
constexpr double kPlot = 1200.0;  ///< width of the time axis

std::string Escaped(const std::string& text) {
  static const std::map<char, std::string> kEscapes = {
      {'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
  std::string safe;
  for (const char c : text) {
    const auto escape = kEscapes.find(c);
    safe += escape == kEscapes.end() ? std::string(1, c) : escape->second;
  }
  return safe;
}

/// Neighbouring microbatches far apart in hue: steps of the golden angle.
int HueOf(std::int64_t unit) {
  return static_cast<int>(std::fmod(static_cast<double>(unit) * 137.508, 360.0));
}

std::string Fill(const DrawnPass& pass) {
  struct Tone {
    int saturation;
    int lightness;
  };
  static constexpr std::array<Tone, 3> kTones = {{{75, 80}, {65, 52}, {25, 66}}};  // by kind
  const auto [saturation, lightness] = kTones.at(static_cast<std::size_t>(pass.timed.pass.kind));
  const int shade = std::min(pass.chunk, 3) * 5;  // later chunks of a device are darker
  return Formatted("hsl(%d,%d%%,%d%%)", HueOf(pass.timed.pass.unit), saturation, lightness - shade);
}

/// A step of 1, 2 or 5 times a power of ten, at most ten of them in `all`.
double TickOf(double all) {
  const double power = std::pow(10.0, std::floor(std::log10(std::max(all, 1e-9) / 10.0)));
  for (const double step : {1.0, 2.0, 5.0, 10.0}) {
    if (all / (step * power) <= 10.0) return step * power;
  }
  return all;
}

class SvgWriter {
 public:
  explicit SvgWriter(const Drawing& drawing) : drawing_(drawing) {
    std::size_t longest = 6;
    for (const DrawnRow& row : drawing.rows) longest = std::max(longest, row.name.size());
    left_ = 16.0 + 7.5 * static_cast<double>(longest);
    height_ = kTop + kRowHeight * static_cast<double>(drawing.rows.size()) + 58.0;
  }

  std::string Write() {
    const double width = left_ + kPlot + 76.0;
    text_ = Formatted("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" ",
                      width, height_);
    text_ += Formatted("viewBox=\"0 0 %.0f %.0f\" font-family=\"monospace\" font-size=\"12\">\n",
                       width, height_);
    text_ += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"8\" y=\"18\">" +
             Escaped(drawing_.title) + "</text>\n";
    text_ +=
        Formatted("<text x=\"%.1f\" y=\"36\" text-anchor=\"end\">bubble</text>\n", width - 8.0);
    for (std::size_t row = 0; row < drawing_.rows.size(); ++row) Row(row, width);
    Axis();
    return text_ + "</svg>\n";
  }

 private:
  double At(std::int64_t ns) const {
    return left_ + kPlot * static_cast<double>(ns) /
                       static_cast<double>(std::max<std::int64_t>(drawing_.makespan_ns, 1));
  }

  void Row(std::size_t number, double width) {
    const DrawnRow& row = drawing_.rows[number];
    const double top = kTop + kRowHeight * static_cast<double>(number);
    text_ += Formatted("<text x=\"8\" y=\"%.1f\">", top + 17.0) + Escaped(row.name) + "</text>\n";
    text_ +=
        Formatted("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#f3f3f3\"/>\n",
                  left_, top + 2.0, kPlot, kRowHeight - 4.0);
    text_ += Formatted(
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"#dddddd\">"
        "<title>warm-up: until the first backward</title></rect>\n",
        left_, top + 2.0, At(row.warmup_ns) - left_, kRowHeight - 4.0);
    for (const DrawnPass& pass : row.passes) Box(pass, top);
    text_ += Formatted("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.1f%%</text>\n",
                       width - 8.0, top + 17.0, 100.0 * row.bubble);
  }

  void Box(const DrawnPass& pass, double top) {
    const double begin = At(pass.timed.begin_ns);
    const double width = At(pass.timed.end_ns) - begin;
    const std::string name = ToString(pass.timed.pass);
    text_ += Formatted(
        "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" stroke=\"white\" "
        "stroke-width=\"0.6\" fill=\"",
        begin, top + 3.0, width, kRowHeight - 6.0);
    text_ += Fill(pass) + Formatted("\"><title>%s of stage %d, %.6g to %.6g ms</title></rect>\n",
                                    name.c_str(), pass.stage,
                                    static_cast<double>(pass.timed.begin_ns) * 1e-6,
                                    static_cast<double>(pass.timed.end_ns) * 1e-6);
    if (width < 8.0 * static_cast<double>(name.size())) return;
    text_ += Formatted(
        "<text x=\"%.2f\" y=\"%.1f\" text-anchor=\"middle\" pointer-events=\"none\">%s"
        "</text>\n",
        begin + width / 2.0, top + 17.0, name.c_str());
  }

  void Axis() {
    const double bottom = kTop + kRowHeight * static_cast<double>(drawing_.rows.size());
    const double all_ms = static_cast<double>(drawing_.makespan_ns) * 1e-6;
    const double tick = TickOf(all_ms);
    for (int i = 0; tick > 0.0 && tick * i <= all_ms; ++i) {
      const double x = left_ + kPlot * tick * i / std::max(all_ms, 1e-9);
      text_ +=
          Formatted("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#888\"/>\n", x,
                    bottom, x, bottom + 5.0);
      text_ += Formatted("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n", x,
                         bottom + 18.0, tick * i);
    }
    text_ +=
        Formatted("<text x=\"%.1f\" y=\"%.1f\">ms</text>\n", left_ + kPlot + 6.0, bottom + 18.0);
    text_ += Formatted(
        "<text x=\"%.1f\" y=\"%.1f\">F forward (light), B backward (full), W weights "
        "(grey); grey background: warm-up; one hue for each microbatch</text>\n",
        left_, bottom + 40.0);
  }

  const Drawing& drawing_;
  std::string text_;
  double left_ = 0.0;
  double height_ = 0.0;
};

}  // namespace

std::string ToSvg(const Drawing& drawing) { return SvgWriter(drawing).Write(); }

}  // namespace troupe
