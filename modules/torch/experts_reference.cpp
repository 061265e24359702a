// B samples, T tokens of each, H hidden, E experts, k of them chosen.
#include "modules/torch/experts_reference.hpp"

#include <map>
#include <utility>

#include "kinds/llama.hpp"
#include "layout/route.hpp"
#include "modules/torch/expert_choices.hpp"
#include "plan/layer_split.hpp"

namespace troupe::reference {

using at::Tensor;

void AddExperts(const ExpertsConfig& experts, const std::string& name, std::int64_t width,
                std::int64_t branches, const Maker& make) {
  make.Exact(name + ".gate.weight", {experts.count, width});
  const auto mlp = [&](const std::string& prefix, std::int64_t inner, const Maker& own) {
    own.Linear(prefix + ".gate_proj", inner, width, false);
    own.Linear(prefix + ".up_proj", inner, width, false);
    own.Linear(prefix + ".down_proj", width, inner, false, branches);
  };
  Maker without_adapters = make;
  without_adapters.lora.reset();
  for (std::int64_t i = 0; i < experts.count; ++i) {
    mlp(name + ".experts." + std::to_string(i), experts.hidden, without_adapters);
  }
  if (experts.shared_hidden == 0) return;
  mlp(name + ".shared_expert", experts.shared_hidden, make);
  make.Linear(name + ".shared_expert_gate", 1, width, false);
}

namespace {

/// [B, T, k] int64: the own choices by `logits`, or those of the run that is compared.
Tensor Choose(const Tensor& logits, const ModuleConfig& module, std::int64_t layer,
              const TextBatch& batch, std::int64_t per_token) {
  const Tensor own = std::get<1>(at::topk(logits.detach(), per_token, -1)).contiguous();
  if (batch.choices == nullptr) return own;
  for (std::int64_t b = 0; b < own.size(0); ++b) {
    for (std::int64_t t = 0; t < batch.lengths[static_cast<std::size_t>(b)]; ++t) {
      auto* const experts = own.data_ptr<std::int64_t>() + (b * own.size(1) + t) * per_token;
      const RoutedToken token{.step = batch.step,
                              .module = module.name,
                              .layer = layer,
                              .sample = batch.samples[static_cast<std::size_t>(b)],
                              .token = t};
      const auto followed = batch.choices->Follow(token, {experts, experts + per_token});
      std::copy(followed.begin(), followed.end(), experts);
    }
  }
  return own;
}

/// E times the sum over experts of f p over some tokens: logits [n, E], chosen [n, k].
Tensor Imbalance(const Tensor& logits, const Tensor& chosen) {
  const std::int64_t experts = logits.size(1);
  const auto tokens = static_cast<double>(logits.size(0));
  const Tensor counts = at::bincount(chosen.flatten(), {}, experts).to(logits.scalar_type());
  const Tensor probability = at::softmax(logits, 1).mean(0);
  return static_cast<double>(experts) * (counts / tokens * probability).sum();
}

/// The tokens of samples, one after the other: [n, ...] of x [B, T, ...].
Tensor TokensOf(const Tensor& x, const std::vector<std::size_t>& samples, const TextBatch& batch) {
  std::vector<Tensor> parts;
  for (const std::size_t b : samples) {
    parts.push_back(x[static_cast<std::int64_t>(b)].narrow(0, 0, batch.lengths[b]));
  }
  return at::cat(parts);
}

/// The samples of each microbatch and set of replicas that run in lock step.
std::vector<std::vector<std::size_t>> LockStepSamples(const ModuleConfig& module,
                                                      const TextBatch& batch) {
  const std::int64_t places = batch.config->samples_per_microbatch();
  std::map<std::pair<std::int64_t, int>, std::vector<std::size_t>> sets;
  for (std::size_t b = 0; b < batch.samples.size(); ++b) {
    const std::int64_t number = batch.samples[b] / batch.config->most_in_pack();
    int replica = 0;
    while (!PartOf(places, module.layout.dp, replica).Contains(number % places)) ++replica;
    sets[{number / places, replica / module.layout.lock_step_replicas()}].push_back(b);
  }
  std::vector<std::vector<std::size_t>> samples;
  for (auto& [key, own] : sets) samples.push_back(std::move(own));
  return samples;
}

Tensor BalanceLoss(const RouterOutputs& outputs, const ModuleConfig& module,
                   const TextBatch& batch) {
  Tensor sum = at::zeros({}, outputs.logits.front().options());
  const auto layers = static_cast<double>(outputs.logits.size());
  if (module.moe.balance == Balance::kSample) {
    for (std::size_t layer = 0; layer < outputs.logits.size(); ++layer) {
      for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
        sum = sum + Imbalance(TokensOf(outputs.logits[layer], {b}, batch),
                              TokensOf(outputs.chosen[layer], {b}, batch));
      }
    }
    return sum / (layers * static_cast<double>(batch.lengths.size()));
  }
  const auto& experts = module.As<LlamaConfig>().experts;
  const auto sets = LockStepSamples(module, batch);
  for (const std::vector<std::size_t>& samples : sets) {
    for (const Interval& stage : SplitLayers(module)) {
      const std::int64_t first = experts.LayersIn({0, stage.begin});
      const std::int64_t own = experts.LayersIn(stage);
      if (own == 0) continue;
      std::vector<Tensor> logits;
      std::vector<Tensor> chosen;
      for (std::int64_t layer = first; layer < first + own; ++layer) {
        const auto at = static_cast<std::size_t>(layer);
        logits.push_back(TokensOf(outputs.logits[at], samples, batch));
        chosen.push_back(TokensOf(outputs.chosen[at], samples, batch));
      }
      sum = sum + Imbalance(at::cat(logits), at::cat(chosen)) * (static_cast<double>(own) / layers);
    }
  }
  return sum / static_cast<double>(sets.size());
}

Tensor SquaredSums(const RouterOutputs& outputs, const TextBatch& batch) {
  Tensor sum = at::zeros({}, outputs.logits.front().options());
  std::vector<std::size_t> all;
  double tokens = 0.0;
  for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
    all.push_back(b);
    tokens += static_cast<double>(batch.lengths[b]);
  }
  for (const Tensor& logits : outputs.logits) {
    sum = sum + at::logsumexp(TokensOf(logits, all, batch), {1}).pow(2).sum();
  }
  return sum / (tokens * static_cast<double>(outputs.logits.size()));
}

}  // namespace

Tensor Experts(const Tensor& x, const ModuleConfig& module, std::int64_t layer,
               const TextBatch& batch, const Parameters& w, RouterOutputs& outputs) {
  const auto& experts = module.As<LlamaConfig>().experts;
  const std::string name = module.name + ".layers." + std::to_string(layer) + ".mlp";
  const Tensor logits = at::matmul(x, w.at(name + ".gate.weight").value.t());
  const Tensor chosen = Choose(logits, module, layer, batch, experts.per_token);
  outputs.logits.push_back(logits);
  outputs.chosen.push_back(chosen);
  const bool after = experts.softmax == RouterSoftmax::kAfter;
  const Tensor weights = after ? at::softmax(logits.gather(-1, chosen), -1)
                               : at::softmax(logits, -1).gather(-1, chosen);
  Tensor y = at::zeros_like(x);
  for (std::int64_t i = 0; i < experts.count; ++i) {
    const Tensor weight = (weights * chosen.eq(i)).sum(-1, /*keepdim=*/true);
    y = y + weight * GatedMlp(x, w, name + ".experts." + std::to_string(i));
  }
  if (experts.shared_hidden == 0) return y;
  return y + at::sigmoid(Linear(x, w, name + ".shared_expert_gate")) *
                 GatedMlp(x, w, name + ".shared_expert");
}

Tensor RouterLoss(const RouterOutputs& outputs, const ModuleConfig& module,
                  const TextBatch& batch) {
  if (outputs.logits.empty()) return {};
  return module.moe.balance_coefficient * BalanceLoss(outputs, module, batch) +
         module.moe.z_coefficient * SquaredSums(outputs, batch);
}

}  // namespace troupe::reference
