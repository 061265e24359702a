#include "bench/paper_memory.hpp"

#include <algorithm>

namespace troupe::bench {
namespace {

constexpr double kGb = 1e9;
constexpr double kWeightBytes = 4.0;      // of a parameter and its gradient, bf16
constexpr double kOptimizerBytes = 12.0;  // of its float32 copy and two moments

/// Specific to these tables, a guess: a row that has a mode without a pipeline and with more state than
/// this recomputes the gated activation.
constexpr double kLargeStateGb = 38.0;

/// The bytes of a token in a layer of the language model, before tp divides them.
double LayerBytes(const LanguageSize& size, bool light) {
  return 12.0 * static_cast<double>(size.hidden) + 4.0 * size.key_width() +
         (light ? 4.0 : 6.0) * static_cast<double>(size.mlp_hidden);
}

double EncoderState(const PaperJob& job) {
  return job.encoder_size.parameters() / job.encoder.tp *
         (kWeightBytes + kOptimizerBytes * job.optimizer_instances / job.encoder.num_holders());
}

double EncoderActivations(const PaperJob& job, double tokens) {
  const double layers =
      *job.regime == Regime::kA ? static_cast<double>(job.encoder_size.layers) : 1.0;
  return tokens * static_cast<double>(job.encoder_size.width) * (10.0 + 24.0 / job.encoder.tp) *
         layers;
}

/// What the encoder adds to the first stage in H, to all in C.
double EncoderBytes(const PaperJob& job, bool first, int in_flight, int samples) {
  const bool keeps = *job.regime == Regime::kA;
  if (job.mode == Mode::kHomogeneous && first) {
    return EncoderState(job) +
           EncoderActivations(job, samples * job.encoder_tokens()) * (keeps ? in_flight : 1);
  }
  if (job.mode != Mode::kColocated) return 0.0;
  // A pass of the encoder covers all microbatches of a pipeline, else one.
  const int microbatches = std::max(1, job.microbatches() / samples);
  const int window = job.language.pp > 1 ? microbatches : 1;
  double bytes = 0.0;
  // Inferred: an encoder that tp does not divide, or with several optimizers, leaves the device while a
  // pipeline runs.
  const bool leaves = job.language.pp > 1 && (job.encoder.tp == 1 || job.optimizer_instances > 1);
  if (!leaves) bytes += EncoderState(job);
  if (keeps) {
    bytes += EncoderActivations(
        job, job.encoder_tokens() * job.samples / job.encoder.dp * window / microbatches);
  }
  // Its rows and their gradients.
  if (first) {
    bytes += 4.0 * static_cast<double>(job.language_size.hidden) * job.encoder_tokens() * samples *
             window;
  }
  return bytes;
}

/// Weights, gradients and optimizer of the language model, in an average stage.
double StateGb(const PaperJob& job) {
  const LanguageSize& size = job.language_size;
  const double parameters =
      static_cast<double>(size.layers) * size.layer_parameters() + 2.0 * size.head_parameters();
  return parameters / (job.language.tp * job.language.pp) *
         (kWeightBytes + kOptimizerBytes / job.language.num_holders()) / kGb;
}

}  // namespace

double PeakGb(const PaperJob& job, double reserve_gb, int samples, bool light) {
  const LanguageSize& size = job.language_size;
  const Layout& layout = job.language;
  const int microbatches = std::max(1, job.microbatches() / samples);
  const double rows = static_cast<double>(samples * job.tokens) / layout.cp;
  const double parameter_bytes = kWeightBytes + kOptimizerBytes / layout.num_holders();
  const auto stages = static_cast<int>(job.split.size());
  double peak = 0.0;
  for (int stage = 0; stage < stages; ++stage) {
    const bool first = stage == 0;
    const bool last = stage + 1 == stages;
    const auto layers = static_cast<double>(job.split[static_cast<std::size_t>(stage)]);
    const double tables = (first ? 1.0 : 0.0) + (last ? 1.0 : 0.0);
    const double parameters =
        (layers * size.layer_parameters() + tables * size.head_parameters()) / layout.tp;
    const int in_flight = std::min(stages - stage, microbatches);
    double bytes = parameters * parameter_bytes;
    bytes += layers * in_flight * rows / layout.tp * LayerBytes(size, light);
    // Scores in bf16 and float32, and their gradient.
    if (last) bytes += 8.0 * rows * static_cast<double>(size.vocab) / layout.tp;
    peak = std::max(peak, bytes + EncoderBytes(job, first, in_flight, samples));
  }
  if (job.mode == Mode::kSeparate) {
    peak = std::max(peak, EncoderState(job) + EncoderActivations(job, job.encoder_tokens()));
  }
  return peak / kGb + reserve_gb;
}

double MemoryGb(const PaperJob& job, const std::vector<PaperJob>& row, double reserve_gb) {
  if (job.language.pp == 1 && !job.prints_microbatches && job.microbatches() % 2 == 0) {
    const double two = PeakGb(job, reserve_gb, 2);
    if (two <= kCapacityGb) return two;
  }
  const bool light = std::any_of(row.begin(), row.end(), [&](const PaperJob& other) {
    return (other.language.pp == 1 && StateGb(other) > kLargeStateGb) ||
           PeakGb(other, reserve_gb) > kCapacityGb;
  });
  return PeakGb(job, reserve_gb, 1, light);
}

}  // namespace troupe::bench
