#include <algorithm>
#include <cmath>

#include "layout/text.hpp"
#include "schedule/drawing.hpp"

namespace troupe {
namespace {

constexpr double kRowHeight = 26.0;
constexpr double kTop = 44.0;
constexpr double kPlot = 1200.0;  ///< width of the time axis

std::string Escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '>') {
      safe += "&gt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else if (c == '"') {
      safe += "&quot;";
    } else {
      safe += c;
    }
  }
  return safe;
}

/// Neighbouring microbatches far apart in hue: steps of the golden angle.
int HueOf(std::int64_t unit) {
  return static_cast<int>(std::fmod(static_cast<double>(unit) * 137.508, 360.0));
}

std::string Fill(const DrawnPass& pass) {
  const int hue = HueOf(pass.timed.pass.unit);
  const int shade = std::min(pass.chunk, 3) * 5;  // later chunks of a device are darker
  switch (pass.timed.pass.kind) {
    case PassKind::kForward:
      return Formatted("hsl(%d,75%%,%d%%)", hue, 80 - shade);
    case PassKind::kBackward:
      return Formatted("hsl(%d,65%%,%d%%)", hue, 52 - shade);
    case PassKind::kWeight:
      return Formatted("hsl(%d,25%%,%d%%)", hue, 66 - shade);
  }
  return "none";
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
