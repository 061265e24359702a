#include "plan/search/alike_layers.hpp"

#include <initializer_list>

#include "kinds/work.hpp"
#include "plan/layer_split.hpp"

namespace troupe {
namespace {

/// The operations of a layer as numbers, to compare it with others.
class OperationNumbers : public WorkList {
 public:
  void AddLinear(const LinearWork& linear) override {
    Add({0, linear.rows, linear.out, linear.in, static_cast<std::int64_t>(linear.cut),
         linear.kv_out, linear.kv_heads, linear.first ? 1 : 0});
  }
  void AddAttention(const AttentionWork& attention) override {
    Add({1, attention.rows, attention.heads, attention.width, attention.kv_width,
         attention.kv_heads});
    numbers_.push_back(attention.pairs);
  }
  void AddElements(const ElementWork& elements) override {
    Add({2, elements.rows, elements.width, elements.inside ? 1 : 0});
    numbers_.push_back(elements.forward);
    numbers_.push_back(elements.backward);
  }
  void AddExperts(const ExpertWork& experts) override {
    Add({3, experts.rows, experts.width, experts.hidden, experts.per_token, experts.count});
  }
  const std::vector<double>& numbers() const { return numbers_; }

 private:
  void Add(std::initializer_list<std::int64_t> numbers) {
    numbers_.push_back(part() ? static_cast<double>(*part()) : -1.0);
    for (const std::int64_t number : numbers) numbers_.push_back(static_cast<double>(number));
  }

  std::vector<double> numbers_;
};

}  // namespace

AlikeLayers::AlikeLayers(const ModuleConfig& module) {
  const auto split = module.model->split_layers();
  if (!split) return;
  StepShape shape{.samples = 1, .tokens = 1, .labels = 1};
  shape.lengths[module.name] = 1;
  std::map<std::vector<double>, std::size_t> known;
  for (std::int64_t layer = 0; layer < split->number; ++layer) {
    OperationNumbers list;
    module.model->ListWork({.layers = {layer, layer + 1}}, shape, module.name, list);
    const auto [found, is_new] = known.try_emplace(list.numbers(), firsts_.size());
    if (is_new) firsts_.push_back(layer);
    kinds_.push_back(found->second);
  }
}

const std::vector<StageRun>& AlikeLayers::RunsOf(const ModuleConfig& module) {
  auto [found, is_new] = runs_.try_emplace(module.num_stages());
  std::vector<StageRun>& runs = found->second;
  if (!is_new) return runs;
  int stage = 0;
  for (const Interval& layers : SplitLayers(module)) {
    StageRun next{1, layers.size(), std::vector<std::int64_t>(num_kinds())};
    for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
      ++next.of_kind[KindOf(layer)];
    }
    const bool goes_on = stage > 1 && stage + 1 < module.num_stages();
    ++stage;
    if (goes_on && runs.back().of_kind == next.of_kind) {
      ++runs.back().stages;
    } else {
      runs.push_back(std::move(next));
    }
  }
  return runs;
}

}  // namespace troupe
