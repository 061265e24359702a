#include "app/run_history.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/progress.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// Values that are not finite are null in the file.
double Number(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : std::nan("");
}

/// ": 19.2k tok/s, 341 samples/s"; empty if neither is known.
std::string SpeedOf(const RunHistory& run) {
  if (run.seconds <= 0.0 || run.tokens <= 0.0) return "";
  const std::string tokens = FormatRate(run.tokens / run.seconds) + " tok/s";
  return ": " + tokens +
         (run.samples > 0.0 ? ", " + FormatRate(run.samples / run.seconds) + " samples/s" : "");
}

}  // namespace

std::string Describe(const Evaluation& e) {
  return Formatted("loss %.4f, next token %.1f%%, content words %.1f%%", e.loss, 100 * e.accuracy,
                   100 * e.content_accuracy);
}

void RunHistory::Add(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return;
  const std::int64_t step = json.value("step", std::int64_t{0});
  if (json.value("kind", "") != "step") return;
  steps = step;
  const double took_s = Number(json, "seconds");
  if (!std::isfinite(took_s)) return;
  seconds += took_s;
  const auto count = [&](const char* rate) {
    const double per_second = Number(json, rate);
    return std::isfinite(per_second) ? per_second * took_s : 0.0;
  };
  tokens += count("tokens_per_second");
  samples += count("samples_per_second");
}

std::string SummaryOf(const RunHistory& run, std::int64_t steps) {
  const std::string planned = std::to_string(steps);
  if (run.steps == 0) return "interrupted before the first of " + planned + " steps\n";
  const std::string trained = std::to_string(run.steps);
  const std::string duration = FormatDuration(run.seconds);
  if (run.steps < steps) {
    return "interrupted after step " + trained + " of " + planned + ", " + duration + SpeedOf(run) +
           '\n';
  }
  return "trained " + trained + (run.steps == 1 ? " step in " : " steps in ") + duration +
         SpeedOf(run) + '\n';
}

}  // namespace troupe
