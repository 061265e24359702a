#include "app/train_observer.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <system_error>

#include "app/cause.hpp"
#include "app/run_events.hpp"
#include "app/run_folders.hpp"
#include "checkpoint/assemble.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/saved_parameters.hpp"
#include "files/file_error.hpp"
#include "files/output_file.hpp"
#include "files/strict_json.hpp"
#include "layout/at.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// Adds the loss of every sink if there are several; `loss` is their sum.
void AddSinks(const RoundResult& result, nlohmann::ordered_json& line) {
  if (result.sinks.size() < 2) return;
  for (const SinkLoss& sink : result.sinks) line["losses"][sink.module] = sink.mean();
}

void AddDataWait(const RoundResult& result, const std::string& source,
                 nlohmann::ordered_json& line) {
  line["data_wait_seconds"] = static_cast<double>(result.data.ns) * 1e-9;
  const DataDelay& delay = result.data.delay;
  if (delay.ns == 0) return;
  line["data_wait_for"] = {
      {"phase", ToString(delay.phase)}, {"source", source}, {"process", delay.process}};
}

/// Drops the lines after `steps` steps, which a resumed run repeats, and adds the lines before to
/// `history`.
std::string KeepMetrics(const std::string& path, std::int64_t steps, RunHistory& history) {
  std::ifstream old(path);
  if (steps > 0 && !old && errno != ENOENT) throw FileError(path, "read", errno);
  std::string kept;
  for (std::string line; steps > 0 && std::getline(old, line);) {
    const auto json = ParseOwnJson(line);
    if (!json.is_object()) continue;
    const std::int64_t step = json.value("step", std::int64_t{0});
    if (step > steps || (step == steps && json.value("kind", "") != "step")) continue;
    kept += line + '\n';
    history.Add(line);
  }
  old.close();
  ReplaceFile(path, kept);
  return path;
}

}  // namespace

TrainObserver::TrainObserver(const Config& config, const RunDirectory& directory,
                             std::int64_t steps_done, int num_ranks, bool terminal,
                             std::shared_ptr<const RowSource> source)
    : config_(config),
      directory_(directory),
      num_ranks_(num_ranks),
      source_(std::move(source)),
      progress_(config.run.steps, terminal),
      metrics_(KeepMetrics(directory.File(kMetricsFile), steps_done, history_),
               FileOpening::kAppend) {
  NoteFolders(directory.path(), config);
  if (!config.log.tensorboard) return;
  tensorboard_.emplace(config, directory.File(kTensorBoardFolder), steps_done, source_);
}

void TrainObserver::WriteMetrics(const nlohmann::ordered_json& line) {
  // Names of files may have any bytes.
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  metrics_.Write(std::as_bytes(std::span(text)));
  history_.Add(text);
}

void TrainObserver::CountFaults(const RoundResult& result, nlohmann::ordered_json& line) {
  if (source_ == nullptr || !source_->tolerates_faults()) return;
  line["skipped_samples"] = source_->CountSkipped(result.round);
  line["replaced_items"] = result.replaced.size();
  for (const ReplacedItem& each : result.replaced) {
    const ReplacedItem item = AsWritten(each);
    if (!history_.replaced.insert(item).second) continue;
    OnWarning(item.line);
    line["replaced_files"].push_back(ReplacedJson(item));
  }
  source_->RequireWithinLimits(history_.replaced);
}

void TrainObserver::OnRound(const RoundResult& result) {
  if (result.round.train) {
    OnStep(result);
  } else {
    OnEvaluation(result);
  }
}

void TrainObserver::OnStep(const RoundResult& result) {
  StepMetrics m = MetricsOf(result, config_, num_ranks_, *memory_);
  if (source_ != nullptr) m.balance = source_->BalanceOf(result.round);
  const std::vector<std::string> sources = config_.data.train_paths();
  if (const auto i = result.data.delay.source; i >= 0) m.delaying_source = sources.at(At(i));
  nlohmann::ordered_json line;
  line["kind"] = "step";
  line["step"] = result.round.step + 1;
  line["loss"] = result.objective();
  AddSinks(result, line);
  line["gradient_norm"] = result.gradient_norm;
  line["clip_coefficient"] = result.clip_coefficient;
  line["learning_rate"] = m.learning_rate;
  line["seconds"] = result.seconds;
  line["tokens_per_second"] = m.tokens_per_second;
  line["samples_per_second"] = m.samples_per_second;
  line["valid_tokens"] = result.loss.tokens;
  CountFaults(result, line);
  line["bubble"] = m.bubble;
  AddDataWait(result, m.delaying_source, line);
  if (m.balance) {
    line["load_max_over_mean"] = m.balance->placed;
    line["drawn_load_max_over_mean"] = m.balance->drawn;
  }
  line["memory_bytes"] = m.memory_bytes;
  if (m.gpu) {
    line["gpu_in_use_bytes"] = m.gpu->in_use_bytes;
    line["gpu_peak_bytes"] = m.gpu->peak_bytes;
    line["gpu_reserved_bytes"] = m.gpu->reserved_bytes;
  }
  WriteMetrics(line);
  if (tensorboard_) tensorboard_->OnStep(result, m);
  progress_.ShowStep(result, m);
}

void TrainObserver::OnEvaluation(const RoundResult& result) {
  const LossSums& sums = result.loss;
  const double accuracy = sums.accuracy();
  const double content_accuracy = sums.content_accuracy();
  nlohmann::ordered_json line;
  line["kind"] = "held_out";
  line["step"] = result.round.step;
  line["loss"] = result.objective();
  AddSinks(result, line);
  line["accuracy"] = accuracy;
  line["content_accuracy"] = content_accuracy;
  line["valid_tokens"] = sums.tokens;
  line["content_tokens"] = sums.content_tokens;
  CountFaults(result, line);
  line["seconds"] = result.seconds;
  WriteMetrics(line);
  if (tensorboard_) tensorboard_->OnEvaluation(result);
  progress_.ShowLine("held out after " + Counted(result.round.step, "step") + ": " +
                     Formatted("loss %.4f, next token %.1f%%, content words %.1f%%",
                               result.objective(), 100 * accuracy, 100 * content_accuracy));
}

void TrainObserver::OnSlow(std::int64_t step, const SlowProcess& slow) {
  OnWarning(ToLine(slow));
  try {
    NoteEvent(directory_.path(), {.time = {}, .step = step, .slow = slow});
  } catch (const std::exception& e) {
    OnWarning(e.what());
  }
}

void TrainObserver::OnWarning(const std::string& line) { PrintWarning(line); }

void TrainObserver::OnFinished(const std::vector<TensorPiece>& pieces, const FetchPiece& fetch) {
  auto tensors = TensorsToWrite(pieces, fetch);
  const std::size_t num_tensors = tensors.size();
  WriteTensors(directory_.File(kWeightsFile), std::move(tensors),
               {{"steps", std::to_string(history_.steps)}});
  num_tensors_ = num_tensors;
}

void TrainObserver::Interrupted() {
  progress_.Finish();
  if (num_tensors_ > 0) {
    std::cout << directory_.File(kWeightsFile) << " is whole: training was done\n" << std::flush;
  }
}

void TrainObserver::Summarize() {
  progress_.Finish();
  std::cout << SummaryOf(history_, config_.run.steps) << "run directory " << directory_.path()
            << ": " << kResolvedFile << ", " << kMetricsFile << ", ";
  for (const std::string& trace : directory_.TraceFolders()) std::cout << trace << "/, ";
  std::cout << kWeightsFile << " (" << num_tensors_ << " tensors)";
  for (const char* folder : {"checkpoints", kTensorBoardFolder}) {
    std::error_code ignored;
    if (!std::filesystem::exists(directory_.File(folder), ignored)) continue;
    std::cout << ", " << folder << '/';
  }
  std::cout << '\n' << std::flush;
}

}  // namespace troupe
