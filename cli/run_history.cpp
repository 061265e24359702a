#include "cli/run_history.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/progress.hpp"

namespace troupe {
namespace {

/// What is not finite stands in the file as null.
double Number(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : std::nan("");
}

std::string LossesOf(const RunHistory& run) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "loss %.4f -> %.4f\n", *run.first_loss, run.last_loss);
  return text.data();
}

/// "trained 20 steps in 3.1s: loss 5.6991 -> 4.1034".
std::string TrainingLine(const RunHistory& run, std::int64_t steps) {
  const std::string trained = std::to_string(run.steps);
  const std::string planned = std::to_string(steps);
  if (!run.first_loss) return "interrupted before the first of " + planned + " steps\n";
  const std::string duration = FormatDuration(run.seconds);
  return (run.steps >= steps
              ? "trained " + trained + " steps in " + duration + ": "
              : "interrupted after step " + trained + " of " + planned + ": " + duration + ", ") +
         LossesOf(run);
}

}  // namespace

std::string Describe(const Evaluation& e) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "loss %.4f, next token %.1f%%, content words %.1f%%",
                e.loss, 100 * e.accuracy, 100 * e.content_accuracy);
  return text.data();
}

void RunHistory::Add(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return;
  const std::int64_t step = json.value("step", std::int64_t{0});
  if (json.value("kind", "") == "step") {
    steps = step;
    seconds += Number(json, "seconds");
    last_loss = Number(json, "loss");
    if (!first_loss) first_loss = last_loss;
  } else {
    last_evaluation = {step, Number(json, "loss"), Number(json, "accuracy"),
                       Number(json, "content_accuracy")};
    if (!first_evaluation) first_evaluation = last_evaluation;
  }
}

std::string SummaryOf(const RunHistory& run, std::int64_t steps) {
  std::string text = TrainingLine(run, steps);
  if (run.first_evaluation && run.first_evaluation->step == 0) {
    text += "held out before: " + Describe(*run.first_evaluation) + "\n";
  }
  if (run.last_evaluation && run.last_evaluation->step == run.steps && run.steps > 0) {
    text += "held out after:  " + Describe(*run.last_evaluation) + "\n";
  }
  return text;
}

}  // namespace troupe
