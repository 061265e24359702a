#include "modules/torch/routed_rows.hpp"

#include <utility>

#include "kinds/llama.hpp"
#include "modules/torch/numerics.hpp"
#include "plan/layer_split.hpp"

namespace troupe {

RowRouting::RowRouting(const Config& config, const ModuleConfig& module, int pp)
    : name_(module.name),
      experts_(module.As<LlamaConfig>().experts),
      scales_{
          .moe = module.moe,
          .all_layers = experts_.LayersIn({0, module.As<LlamaConfig>().layers}),
          .stage_layers = experts_.LayersIn(SplitLayers(module).at(static_cast<std::size_t>(pp)))},
      samples_per_microbatch_(config.samples_per_microbatch() * config.most_in_pack()) {
  const int sets = module.layout.dp / module.layout.lock_step_replicas();
  scales_.microbatch = 1.0 / static_cast<double>(config.schedule.microbatches * sets);
}

RoutedRowsPtr RowRouting::RowsOf(const ForwardPass& pass, const TokenPlaces& places,
                                 const TensorGroup& tensor, const at::Device& device) const {
  auto rows = c10::make_intrusive<RoutedRows>();
  if (experts_.count == 0) return rows;
  const RowTable* const table = pass.table();
  const bool records = RecordExpertChoices::Active() != nullptr && pass.train && table != nullptr;
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> groups;
  std::int64_t row = 0;
  static const std::vector<std::int64_t> kNone;
  for (const auto& place : places.RowsOfSlice(table == nullptr ? kNone : table->lengths,
                                              tensor.size(), tensor.rank())) {
    if (place) {
      tokens.push_back(row);
      groups.push_back(static_cast<std::int64_t>(place->sample));
      if (records) {
        rows->names.push_back({.step = pass.step,
                               .module = name_,
                               .sample = pass.first_microbatch * samples_per_microbatch_ +
                                         table->samples.at(place->sample),
                               .token = place->token});
      }
    }
    ++row;
  }
  if (std::ssize(tokens) < row) rows->tokens = Upload(at::tensor(tokens, at::kLong), device);
  const MoeConfig& moe = scales_.moe;
  if (!pass.train || (moe.balance_coefficient == 0.0 && moe.z_coefficient == 0.0)) return rows;
  RouterScales scales = scales_;
  scales.sample = pass.sample_scale;
  scales.token = pass.token_scale;
  rows->losses =
      c10::make_intrusive<RouterLosses>(scales, Upload(at::tensor(groups, at::kLong), device),
                                        std::ssize(places.lengths()), experts_);
  return rows;
}

}  // namespace troupe
