#include "app/progress.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sys/ioctl.h>
#include <unistd.h>

#include "files/strict_json.hpp"
#include "layout/text.hpp"
#include "modules/learning_rate.hpp"
#include "modules/memory_meter.hpp"

namespace troupe {
namespace {

constexpr std::size_t kRecentSteps = 20;
constexpr int kBarWidth = 20;

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

std::size_t TerminalColumns() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col : 80;
}

std::string Bar(std::int64_t step, std::int64_t steps) {
  const auto filled = static_cast<int>(kBarWidth * step / std::max<std::int64_t>(steps, 1));
  std::string bar = "[";
  for (int i = 0; i < kBarWidth; ++i) bar += i < filled ? '=' : i == filled ? '>' : ' ';
  return bar + "] ";
}

double Gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

std::string FormatMemory(const StepMetrics& m) {
  if (!m.gpu) return Formatted("mem %lld MiB", static_cast<long long>(m.memory_bytes >> 20));
  return Formatted("gpu mem %.1f GiB (peak %.1f, reserved %.1f)", Gib(m.gpu->in_use_bytes),
                   Gib(m.gpu->peak_bytes), Gib(m.gpu->reserved_bytes));
}

/// Ranks of other processes do not use the GPUs of this process.
MemoryUse FullestGpu(int num_ranks, MemoryMeter& memory) {
  MemoryUse most;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const MemoryUse use = memory.UseOf(rank);
    if (use.peak_bytes > most.peak_bytes) most = use;
  }
  return most;
}

/// " (language 5.6991, caption 5.7012)": the mean loss of each sink; empty for one sink.
std::string SinkText(const std::vector<SinkLoss>& sinks) {
  if (sinks.size() < 2) return "";
  const auto text_of = [](const SinkLoss& sink) {
    return sink.module + Formatted(" %.4f", sink.mean());
  };
  return " (" + Listed(sinks, ", ", text_of) + ")";
}

/// "load 1.02x (1.31x as drawn)  ": the load of the fullest replica over the mean one.
std::string BalanceText(const std::optional<StepBalance>& balance) {
  if (!balance) return "";
  return Formatted("load %.2fx (%.2fx as drawn)  ", balance->placed, balance->drawn);
}

/// "data 12% (decode mix665k.json on n1)  ": the share of the step for which a replica waited for its
/// samples alone, and the slowest part of their preparation.
std::string DataText(const RoundResult& result, const std::string& source) {
  const double share = static_cast<double>(result.data.ns) * 1e-9 / result.seconds;
  if (!(share >= 0.01)) return "";
  const DataDelay& delay = result.data.delay;
  std::string text = Formatted("data %.0f%%", 100 * std::min(share, 1.0));
  if (delay.ns > 0) {
    text += std::string(" (") + ToString(delay.phase) + (source.empty() ? "" : " " + source) +
            " on " + delay.process + ")";
  }
  return text + "  ";
}

}  // namespace

std::string FormatRate(double per_second) {
  if (per_second >= 1e6) return Formatted("%.2fM", per_second / 1e6);
  if (per_second >= 1e3) return Formatted("%.1fk", per_second / 1e3);
  return Formatted(per_second < 100 ? "%.1f" : "%.0f", per_second);
}

std::string FormatDuration(double seconds) {
  if (seconds < 9.95) return Formatted("%.1fs", seconds);  // above, it would read "10.0s"
  const auto s = static_cast<std::int64_t>(std::llround(seconds));
  if (s >= 3600) return Formatted("%lldh%02lldm", s / 3600LL, s / 60LL % 60LL);
  if (s >= 60) return Formatted("%lldm%02llds", s / 60LL, s % 60LL);
  return Formatted("%llds", s + 0LL);
}

StepMetrics MetricsOf(const RoundResult& result, const Config& config, int num_ranks,
                      MemoryMeter& memory) {
  StepMetrics m;
  const OptimizerConfig& optimizer = config.optimizer;
  const double factor = ScheduleFactor(optimizer, result.round.step, config.run.steps);
  m.learning_rate = optimizer.min_learning_rate +
                    factor * (optimizer.learning_rate - optimizer.min_learning_rate);
  m.tokens_per_second = static_cast<double>(result.loss.sequence_tokens) / result.seconds;
  m.samples_per_second = static_cast<double>(result.loss.samples) / result.seconds;
  m.bubble = std::clamp(1.0 - result.busy_seconds / (result.seconds * num_ranks), 0.0, 1.0);
  m.memory_bytes = ResidentMemory().UseOf(0).in_use_bytes;
  if (config.cluster.backend == Backend::kCuda) m.gpu = FullestGpu(num_ranks, memory);
  return m;
}

std::string Progress::EtaOf(std::int64_t step) {
  const double sum = std::accumulate(recent_seconds_.begin(), recent_seconds_.end(), 0.0);
  const double mean = sum / static_cast<double>(std::max<std::size_t>(recent_seconds_.size(), 1));
  return FormatDuration(mean * static_cast<double>(steps_ - step));
}

void Progress::ShowStep(const RoundResult& result, const StepMetrics& m) {
  const std::int64_t step = result.round.step + 1;
  recent_seconds_.push_back(result.seconds);
  if (recent_seconds_.size() > kRecentSteps) recent_seconds_.pop_front();
  const std::string line =
      Formatted("step %lld/%lld  loss %.4f", static_cast<long long>(step),
                static_cast<long long>(steps_), result.objective()) +
      SinkText(result.sinks) +
      Formatted("  gnorm %.3f  lr %.1e  ", result.gradient_norm, m.learning_rate) +
      FormatRate(m.tokens_per_second) + " tok/s  " + FormatRate(m.samples_per_second) +
      Formatted(" samples/s  %.3f s  bubble %2.0f%%  ", result.seconds, 100 * m.bubble) +
      DataText(result, m.delaying_source) + BalanceText(m.balance) + FormatMemory(m) + "  eta " +
      EtaOf(step);
  if (!terminal_) {
    std::cout << line << '\n' << std::flush;
    return;
  }
  // A line that wraps cannot be drawn over, so the bar is cut at the width of the terminal.
  const std::string bar = Bar(step, steps_) + line;
  std::cout << '\r' << "\033[K" << bar.substr(0, TerminalColumns() - 1) << std::flush;
  bar_open_ = true;
}

void Progress::ShowLine(const std::string& line) {
  if (bar_open_) std::cout << "\r\033[K";
  bar_open_ = false;
  std::cout << line << '\n' << std::flush;
}

void Progress::Finish() {
  if (bar_open_) std::cout << '\n';
  bar_open_ = false;
}

nlohmann::ordered_json ReplacedJson(const ReplacedItem& item) {
  return {{"train", item.train},
          {"source", item.source},
          {"row", item.row},
          {"file", item.file},
          {"reason", item.line}};
}

static ReplacedItem ReplacedOf(const nlohmann::json& entry) {
  return {entry.value("train", true), entry.value("source", -1),
          entry.value("row", std::int64_t{0}), entry.value("file", ""), entry.value("reason", "")};
}

ReplacedItem AsWritten(const ReplacedItem& item) {
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
  return ReplacedOf(nlohmann::json::parse(ReplacedJson(item).dump(-1, ' ', false, kReplace)));
}

void RunHistory::Add(const std::string& line) {
  try {
    AddLine(ParseOwnJson(line));
  } catch (const nlohmann::json::type_error&) {
    return;
  }
}

void RunHistory::AddLine(const nlohmann::json& line) {
  if (!line.is_object()) return;
  for (const auto& entry : line.value("replaced_files", nlohmann::json::array())) {
    replaced.insert(ReplacedOf(entry));
  }
  const std::int64_t step = line.value("step", std::int64_t{0});
  if (line.value("kind", "") != "step") return;
  steps = step;
  const double took_s = Number(line, "seconds");
  if (!std::isfinite(took_s)) return;
  seconds += took_s;
  const auto count = [&](const char* rate) {
    const double per_second = Number(line, rate);
    return std::isfinite(per_second) ? per_second * took_s : 0.0;
  };
  skipped_samples += line.value("skipped_samples", std::int64_t{0});
  replaced_items += line.value("replaced_items", std::int64_t{0});
  tokens += count("tokens_per_second");
  samples += count("samples_per_second");
}

/// "bad samples were left out 12 times, bad files were replaced 3 times (...)"; empty if none was.
static std::string UnusableText(const RunHistory& run) {
  std::vector<std::string> parts;
  const auto add = [&](const char* what, std::int64_t count) {
    if (count > 0) parts.push_back(what + Counted(count, "time"));
  };
  add("bad samples were left out ", run.skipped_samples);
  add("bad files were replaced ", run.replaced_items);
  if (parts.empty()) return "";
  return Listed(parts) + " (skipped_samples and replaced_items in metrics.jsonl)\n";
}

std::string SummaryOf(const RunHistory& run, std::int64_t steps) {
  const std::string planned = std::to_string(steps);
  if (run.steps == 0) return "interrupted before the first of " + planned + " steps\n";
  const std::string time = FormatDuration(run.seconds) + SpeedOf(run) + '\n' + UnusableText(run);
  return run.steps < steps ? "interrupted after step " + std::to_string(run.steps) + " of " +
                                 planned + ", " + time
                           : "trained " + Counted(run.steps, "step") + " in " + time;
}

}  // namespace troupe
