#include "cli/train_observer.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "checkpoint/assemble.hpp"
#include "checkpoint/output_file.hpp"
#include "checkpoint/safetensors.hpp"

namespace troupe {
namespace {

double Ratio(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

Evaluation EvaluationOf(const LossSums& sums) {
  return {sums.tokens > 0 ? sums.loss / static_cast<double>(sums.tokens) : 0.0,
          Ratio(sums.correct, sums.tokens), Ratio(sums.content_correct, sums.content_tokens)};
}

std::string Describe(const Evaluation& e) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "loss %.4f, next token %.1f%%, content words %.1f%%",
                e.loss, 100 * e.accuracy, 100 * e.content_accuracy);
  return text.data();
}

/// A run that goes on after `steps` steps forgets what it had measured beyond them.
std::string KeepMetrics(const std::string& path, std::int64_t steps) {
  std::ifstream old(path);
  std::string kept;
  for (std::string line; steps > 0 && std::getline(old, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    const std::int64_t step = json.value("step", std::int64_t{0});
    if (step < steps || (step == steps && json.value("kind", "") == "step")) kept += line + '\n';
  }
  old.close();
  ReplaceFile(path, [&](OutputFile& file) { file.Write(std::as_bytes(std::span(kept))); });
  return path;
}

}  // namespace

TrainObserver::TrainObserver(const Config& config, const RunDirectory& directory, int num_ranks,
                             bool terminal)
    : config_(config),
      directory_(directory),
      num_ranks_(num_ranks),
      progress_(config.run.steps, terminal),
      metrics_(KeepMetrics(directory.File("metrics.jsonl"), directory.steps_done()),
               std::ios::app) {
  if (!metrics_) throw std::runtime_error(directory.File("metrics.jsonl") + ": cannot create");
}

void TrainObserver::WriteMetrics(const std::string& line) {
  metrics_ << line << '\n' << std::flush;
  if (!metrics_) {
    throw std::runtime_error(directory_.File("metrics.jsonl") +
                             ": cannot write: " + std::strerror(errno));
  }
}

void TrainObserver::OnRound(const RoundResult& result) {
  if (result.round.train) {
    OnStep(result);
  } else {
    OnEvaluation(result);
  }
}

void TrainObserver::OnStep(const RoundResult& result) {
  const StepMetrics m = MetricsOf(result, config_, num_ranks_);
  if (!first_step_) first_step_ = m;
  last_step_ = m;
  training_seconds_ += m.seconds;
  nlohmann::ordered_json line;
  line["kind"] = "step";
  line["step"] = m.step;
  line["loss"] = m.loss;
  line["gradient_norm"] = m.gradient_norm;
  line["clip_coefficient"] = result.clip_coefficient;
  line["learning_rate"] = m.learning_rate;
  line["seconds"] = m.seconds;
  line["tokens_per_second"] = m.tokens_per_second;
  line["valid_tokens"] = result.loss.tokens;
  line["bubble"] = m.bubble;
  line["memory_bytes"] = m.memory_bytes;
  WriteMetrics(line.dump());
  progress_.ShowStep(m);
}

void TrainObserver::OnEvaluation(const RoundResult& result) {
  last_evaluation_ = EvaluationOf(result.loss);
  if (!first_evaluation_) first_evaluation_ = last_evaluation_;
  nlohmann::ordered_json line;
  line["kind"] = "held_out";
  line["step"] = result.round.step;
  line["loss"] = last_evaluation_.loss;
  line["accuracy"] = last_evaluation_.accuracy;
  line["content_accuracy"] = last_evaluation_.content_accuracy;
  line["valid_tokens"] = result.loss.tokens;
  line["content_tokens"] = result.loss.content_tokens;
  line["seconds"] = result.seconds;
  WriteMetrics(line.dump());
  progress_.ShowLine("held out after " + std::to_string(result.round.step) +
                     " steps: " + Describe(last_evaluation_));
}

void TrainObserver::OnWarning(const std::string& line) {
  std::cerr << "troupe: warning: " + line + "\n" << std::flush;
}

void TrainObserver::OnFinished(const std::vector<TensorPiece>& pieces) {
  const auto tensors = AssembleTensors(pieces);
  WriteSafetensors(directory_.File("weights.safetensors"), tensors,
                   {{"steps", std::to_string(config_.run.steps)}});
  num_tensors_ = tensors.size();
}

void TrainObserver::Interrupted() {
  progress_.Finish();
  if (num_tensors_ > 0) {
    std::cout << directory_.File("weights.safetensors") << " is whole: training was done\n"
              << std::flush;
  }
}

void TrainObserver::Summarize() {
  progress_.Finish();
  if (first_step_) {
    std::printf("\ntrained %lld steps in %s: loss %.4f -> %.4f\n",
                static_cast<long long>(last_step_.step), FormatDuration(training_seconds_).c_str(),
                first_step_->loss, last_step_.loss);
  }
  if (first_evaluation_) {
    std::printf("held out before: %s\nheld out after:  %s\n", Describe(*first_evaluation_).c_str(),
                Describe(last_evaluation_).c_str());
  }
  std::printf("%s/: resolved.toml, metrics.jsonl, trace.bin, weights.safetensors (%zu tensors)\n",
              directory_.path().c_str(), num_tensors_);
  std::fflush(stdout);
}

}  // namespace troupe
