// Experts divided over ranks: what the ranks send each other, and what they keep.
#include <algorithm>
#include <map>

#include <catch2/catch.hpp>

#include "modules/torch/expert_choices.hpp"
#include "plan/memory.hpp"
#include "plan/stage_parts.hpp"
#include "tests/torch/job.hpp"
#include "tests/torch/processes.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kSamples = 8;
constexpr std::int64_t kTokens = 48;
constexpr std::int64_t kExperts = 8;
constexpr std::int64_t kHidden = 64;

Inputs TokenInputs() {
  Inputs inputs;
  inputs.tokens = Buffer::Allocate({kSamples, kTokens}, DType::kInt64);
  inputs.labels = Buffer::Allocate({kSamples, kTokens}, DType::kInt64);
  for (std::int64_t i = 0; i < kSamples * kTokens; ++i) {
    inputs.tokens.as<std::int64_t>()[i] = (i * 7 + i / 4) % 21;
    inputs.labels.as<std::int64_t>()[i] = (i * 11) % 21;
  }
  inputs.content = Buffer::Zeros({kSamples, kTokens}, DType::kUInt8);
  for (std::int64_t sample = 0; sample < kSamples; ++sample) {
    inputs.table.samples.push_back(sample);
    inputs.table.rows.push_back(kTokens);
  }
  return inputs;
}

Config ExpertLanguage(Layout layout, Precision precision) {
  Config config = LanguageAlone(layout, precision);
  ModuleConfig& module = ModuleOf(config, "language");
  auto& llama = module.As<LlamaConfig>();
  llama.context = kTokens;
  llama.layers = 1;
  llama.experts = {.count = kExperts, .per_token = 2, .hidden = 32};
  module.moe.balance_coefficient = 0.0;
  return config;
}

/// Rows that each of `parts` ranks sends to others for their experts, and gets from them.
struct Rows {
  std::int64_t sent = 0;
  std::int64_t received = 0;
};
std::vector<Rows> RoutedRows(ExpertChoices& choices, int parts) {
  std::vector<Rows> rows(static_cast<std::size_t>(parts));
  for (std::int64_t sample = 0; sample < kSamples; ++sample) {
    for (std::int64_t token = 0; token < kTokens; ++token) {
      const auto from =
          static_cast<std::size_t>((sample * kTokens + token) * parts / (kSamples * kTokens));
      const RoutedToken name{.module = "language", .sample = sample, .token = token};
      for (const std::int64_t expert : choices.Follow(name, {})) {
        const auto to = static_cast<std::size_t>(expert * parts / kExperts);
        if (from == to) continue;
        ++rows[from].sent;
        ++rows[to].received;
      }
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("rows go to the ranks with their experts and back, once forward and once backward",
          "[torch][experts]") {
  const auto precision = GENERATE(Precision::kFloat32, Precision::kBFloat16);
  const int parts = GENERATE(2, 4);
  ExpertChoices choices;
  const RecordExpertChoices recording(choices);
  const Inputs inputs = TokenInputs();
  const auto here = BytesOfMicrobatch(ExpertLanguage({.tp = parts}, precision), inputs);
  choices.Forget(100);
  const auto there =
      BytesOfMicrobatch(ExpertLanguage({.tp = parts, .ep = parts}, precision), inputs);
  const std::vector<Rows> rows = RoutedRows(choices, parts);
  CHECK(choices.counts().followed == kSamples * kTokens);
  const double row_bytes = kHidden * (precision == Precision::kBFloat16 ? 2.0 : 4.0);
  for (std::size_t rank = 0; rank < here.size(); ++rank) {
    const auto both = static_cast<double>(rows[rank].sent + rows[rank].received);
    const double most = 2.0 * both * row_bytes;
    const double got = there[rank] - here[rank];
    INFO("ep " << parts << ", rank " << rank << ": " << got / most);
    CHECK(got <= 1.02 * most);
    CHECK(got >= most);
  }
}

TEST_CASE("a rank has its experts, and those along expert-dp divide their state",
          "[torch][experts]") {
  const auto precision = GENERATE(Precision::kFloat32, Precision::kBFloat16);
  const int instances = GENERATE(1, 2);
  Config config = ExpertLanguage({.tp = 2, .dp = 4, .ep = 4}, precision);
  config.optimizer.shard = OptimizerShard::kData;
  config.optimizer.instances = instances;
  const auto specs = StageParameters(config, "language", 0);
  double experts = 0;
  double others = 0;
  for (const ParameterSpec& spec : specs) {
    const bool cut = spec.cut != Cut::kNone && spec.cut != Cut::kSummed;
    const double parts = spec.expert ? 4.0 : cut ? 2.0 : 1.0;
    (spec.expert ? experts : others) += static_cast<double>(spec.num_elements()) / parts;
  }
  const bool mixed = precision == Precision::kBFloat16;
  const double always = mixed ? 2 + 4 : 4 + 4;
  const double divided = (mixed ? 12.0 : 8.0) * instances;
  const double most = experts * (always + divided / 2) + others * (always + divided / 4);
  Job job(config);
  for (int dp = 0; dp < 4; ++dp) {
    for (int tp = 0; tp < 2; ++tp) {
      const auto bytes = static_cast<double>(job.Program("language", 0, dp, tp).state_bytes());
      INFO("dp " << dp << " tp " << tp << ": " << bytes / most);
      CHECK(bytes <= 1.05 * most);
      CHECK(bytes >= 0.95 * most);
    }
  }
  const StageMemory memory = EstimateMemory(config, "language", 0);
  CHECK(static_cast<double>(memory.state()) <= 1.05 * most);
}

}  // namespace troupe
