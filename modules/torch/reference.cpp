// In order: inputs, loss, the forward pass of the whole graph, the optimizer, the interface.
// B samples, T tokens, N = B * T, V vocabulary.
#include "modules/torch/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <utility>

#include "modules/learning_rate.hpp"
#include "modules/tensor_pieces.hpp"
#include "modules/torch/tensors.hpp"
#include "modules/torch/torch_kind.hpp"

namespace troupe {
namespace {

using at::Tensor;
using reference::Insertion;
using reference::Parameter;
using reference::Refuse;

/// [B, T] -> [N]
Tensor ReadPerToken(const Buffer& buffer, DType dtype, const Tensor& tokens,
                    const std::string& what) {
  const Tensor values = AsTensor(buffer, dtype, 2, what);
  if (values.sizes() != tokens.sizes()) {
    Refuse(what + ": expected " + ToString(tokens.sizes().vec()) + " as for the tokens, got " +
           ToString(values.sizes().vec()));
  }
  return values.flatten();
}

/// Every index must be in [0, end): libtorch would throw without naming the input, or not at all.
void CheckRange(const Tensor& indexes, std::int64_t end, const std::string& what) {
  if (indexes.numel() == 0) return;
  const auto low = indexes.min().item<std::int64_t>();
  const auto high = indexes.max().item<std::int64_t>();
  if (low >= 0 && high < end) return;
  Refuse(what + ": expected 0 to " + std::to_string(end - 1) + ", got " + std::to_string(low) +
         " to " + std::to_string(high));
}

/// Adds the sums over the tokens with a label; returns the summed cross-entropy, a scalar.
/// logits [N, V], labels [N] int64, content [N] bool or undefined.
Tensor CrossEntropy(const Tensor& logits, const Tensor& labels, const Tensor& content,
                    LossSums& sums) {
  const Tensor valid = at::nonzero(labels != kNoLabel).flatten();
  const Tensor label = labels.index_select(0, valid);
  CheckRange(label, logits.size(1), "labels");
  const Tensor chosen = logits.index_select(0, valid);
  const Tensor loss = -at::log_softmax(chosen, 1).gather(1, label.unsqueeze(1)).sum();
  const Tensor correct = chosen.argmax(1) == label;
  sums.loss += loss.item<double>();
  sums.tokens += valid.numel();
  sums.correct += correct.sum().item<std::int64_t>();
  if (content.defined()) {
    const Tensor counted = content.index_select(0, valid);
    sums.content_tokens += counted.sum().item<std::int64_t>();
    sums.content_correct += (counted & correct).sum().item<std::int64_t>();
  }
  return loss;
}

/// [n] of an encoder, none if it is not in `by_encoder`.
Tensor PositionsIn(const std::map<std::string, Buffer>& by_encoder, const std::string& encoder) {
  const auto found = by_encoder.find(encoder);
  return AsTensor(found == by_encoder.end() ? Buffer() : found->second, DType::kInt64, 1,
                  "positions of " + encoder);
}

/// `newline` [H] is undefined for images that are not cut into tiles.
Insertion MakeInsertion(const Tensor& rows, const Tensor& newline, const Inputs& whole,
                        const EdgeConfig& edge, std::int64_t num_tokens) {
  const std::string what = "positions of " + edge.from;
  const Tensor positions = PositionsIn(whole.positions, edge.from);
  if (positions.size(0) != rows.size(0)) {
    Refuse(what + ": expected " + std::to_string(rows.size(0)) + ", one for each row, got " +
           std::to_string(positions.size(0)));
  }
  if (!newline.defined()) {
    CheckRange(positions, num_tokens, what);
    return {rows, positions};
  }
  const Tensor kept = (positions >= 0).nonzero().flatten();
  const Tensor newlines = PositionsIn(whole.newlines, edge.from);
  const Insertion all{at::cat({rows.index_select(0, kept), newline.repeat({newlines.size(0), 1})}),
                      at::cat({positions.index_select(0, kept), newlines})};
  CheckRange(all.positions, num_tokens, what);
  return all;
}

/// A copy of the whole tensor.
TensorPiece WholePiece(const std::string& name, const Tensor& tensor) {
  return {.name = name,
          .global_shape = tensor.sizes().vec(),
          .offsets = std::vector<std::int64_t>(static_cast<std::size_t>(tensor.dim()), 0),
          .value = AsBuffer(tensor.detach().clone(at::MemoryFormat::Contiguous))};
}

/// Copies the piece into its place in `whole`.
void Insert(const TensorPiece& piece, Tensor whole) {
  const Shape& shape = piece.value.shape();
  if (piece.global_shape != whole.sizes().vec() || !piece.value.defined() || !LiesInside(piece)) {
    Refuse(piece.name + ": expected a piece of " + ToString(whole.sizes().vec()) + ", got " +
           ToString(shape) + " at " + ToString(piece.offsets) + " of " +
           ToString(piece.global_shape));
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    whole = whole.narrow(static_cast<std::int64_t>(d), piece.offsets[d], shape[d]);
  }
  whole.copy_(AsTensor(piece.value));
}

}  // namespace

struct Reference::State {
  Config config;
  reference::Parameters parameters;
  double gradient_norm = 0.0;

  /// The losses of all language models.
  struct Losses {
    Tensor sum;        ///< over the tokens with a label
    Tensor auxiliary;  ///< complete as it is
  };

  /// Runs every module once. `choices`: the experts of the run to follow in `step`; null: of none.
  Losses Forward(const Inputs& whole, LossSums& sums, std::int64_t step = 0,
                 ExpertChoices* choices = nullptr) const;
  /// Makes the adapters of `module` drop inputs in `step`. Without a step they drop nothing.
  void SetDropout(const ModuleConfig& module, const Inputs& whole,
                  std::optional<std::int64_t> step);
  Tensor EncodeRows(const ModuleConfig& encoder, const Inputs& whole) const;
  void TakeGradients();
  void Update(std::int64_t step);
  void UpdateOne(Parameter& parameter, double clip, double schedule, std::int64_t step) const;
};

/// One sequence for each sample of a language model, for each square of an encoder's images.
static std::vector<reference::Dropout::Sequence> SequencesOf(const ModuleConfig& module,
                                                             const Inputs& whole) {
  std::vector<reference::Dropout::Sequence> sequences;
  if (module.model->text()) {
    for (const std::int64_t sample : whole.table.samples) sequences.push_back({sample, 0});
    return sequences;
  }
  const auto field = whole.fields.find(module.name);
  if (field == whole.fields.end()) return sequences;
  const RowTable& rows = whole.expected.at(module.name);
  const auto& lengths = field->second.lengths;
  const std::int64_t squares = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  for (std::size_t i = 0; i < rows.samples.size(); ++i) {
    const std::int64_t own = squares == 0 ? 0 : rows.rows[i] * squares / rows.num_rows();
    for (std::int64_t one = 0; one < own; ++one) sequences.push_back({rows.samples[i], one});
  }
  return sequences;
}

void Reference::State::SetDropout(const ModuleConfig& module, const Inputs& whole,
                                  std::optional<std::int64_t> step) {
  if (!module.lora || module.lora->dropout == 0.0) return;
  std::shared_ptr<const reference::Dropout> dropout;
  if (step) {
    dropout = std::make_shared<const reference::Dropout>(
        reference::Dropout{.share = module.lora->dropout,
                           .seed = config.run.seed,
                           .step = *step,
                           .sequences = SequencesOf(module, whole)});
  }
  for (auto& [name, parameter] : parameters) {
    if (name.starts_with(module.name + ".")) parameter.dropout = dropout;
  }
}

Tensor Reference::State::EncodeRows(const ModuleConfig& encoder, const Inputs& whole) const {
  const auto field = encoder.model->field();
  const Shape row_shape = field->row_shape();
  const std::string what = std::string(field->word()) + " of " + encoder.name;
  const auto found = whole.fields.find(encoder.name);
  const FieldItems items = found == whole.fields.end() ? FieldItems() : found->second;
  const Tensor values = AsTensor(items.values, DType::kFloat32, 1 + row_shape.size(), what);
  if (values.sizes().slice(1) != at::IntArrayRef(row_shape)) {
    Refuse(what + ": expected [n, " + ToString(row_shape).substr(1) + ", got " +
           ToString(values.sizes().vec()));
  }
  const at::ScalarType dtype = reference::TypeOf(config.run.precision);
  if (values.size(0) == 0) return at::zeros({0, encoder.model->row_width()}, dtype);
  const Tensor rounded = reference::RoundedTo(config.run.precision, values).to(dtype);
  return TorchKindOf(encoder).reference.encode({rounded, items.lengths}, encoder, parameters);
}

Reference::State::Losses Reference::State::Forward(const Inputs& whole, LossSums& sums,
                                                   std::int64_t step,
                                                   ExpertChoices* choices) const {
  const Tensor tokens = AsTensor(whole.tokens, DType::kInt64, 2, "tokens");
  const Tensor labels = ReadPerToken(whole.labels, DType::kInt64, tokens, "labels");
  Tensor content;
  if (whole.content.defined()) {
    content = ReadPerToken(whole.content, DType::kUInt8, tokens, "content").to(at::kBool);
  }
  std::map<std::string, Tensor> encoded;  // an encoder that feeds two language models runs once
  for (const EdgeConfig& edge : config.edges) {
    if (!encoded.contains(edge.from)) {
      encoded[edge.from] = EncodeRows(reference::Source(config, edge), whole);
    }
  }
  reference::TextBatch batch{.tokens = tokens,
                             .samples = whole.table.samples,
                             .lengths = whole.table.lengths,
                             .config = &config,
                             .step = step,
                             .choices = choices};
  if (batch.lengths.empty()) batch.lengths = whole.table.rows;  // without padding
  const Tensor zero = at::zeros({}, reference::TypeOf(config.run.precision));
  Losses losses{zero, zero};
  for (const ModuleConfig& module : config.modules) {
    const auto make_logits = TorchKindOf(module).reference.logits;
    if (make_logits == nullptr) continue;
    CheckRange(tokens, module.model->text().value().vocab, "tokens");
    std::vector<Insertion> insertions;
    for (const EdgeConfig& edge : config.edges) {
      if (edge.to != module.name) continue;
      const Tensor& rows = encoded[edge.from];
      const auto newline = parameters.find(reference::ProjectorName(edge) + ".image_newline");
      insertions.push_back(
          MakeInsertion(edge.through ? reference::Project(rows, edge, parameters) : rows,
                        newline == parameters.end() ? Tensor() : newline->second.value, whole, edge,
                        tokens.numel()));
    }
    const reference::TextOutput output = make_logits(batch, insertions, module, parameters);
    losses.sum = losses.sum + CrossEntropy(output.logits, labels, content, sums);
    if (output.auxiliary.defined()) losses.auxiliary = losses.auxiliary + output.auxiliary;
  }
  return losses;
}

/// Moves the gradients out of the leaves; a leaf that the loss did not reach has a gradient of
/// zeros.
void Reference::State::TakeGradients() {
  double squares = 0.0;
  for (auto& [name, parameter] : parameters) {
    if (!parameter.trainable()) continue;
    Tensor& gradient = parameter.value.mutable_grad();
    parameter.gradient = gradient.defined() ? gradient : at::zeros_like(parameter.gradient);
    gradient = Tensor();
    squares += parameter.gradient.to(at::kDouble).pow(2).sum().item<double>();
  }
  gradient_norm = std::sqrt(squares);
}

void Reference::State::Update(std::int64_t step) {
  const at::NoGradGuard no_graph;
  const double limit = config.optimizer.clip_norm;
  const double clip = limit > 0.0 ? std::min(1.0, limit / (gradient_norm + 1e-6)) : 1.0;
  const double schedule = ScheduleFactor(config.optimizer, step, config.run.steps);
  for (auto& [name, parameter] : parameters) {
    if (!parameter.trainable()) continue;
    UpdateOne(parameter, clip, schedule, step);
    SetFromKept(parameter, config.run.precision);
  }
}

/// AdamW with decoupled weight decay (arXiv:1711.05101, algorithm 2).
void Reference::State::UpdateOne(Parameter& parameter, double clip, double schedule,
                                 std::int64_t step) const {
  const OptimizerConfig& all = config.optimizer;
  const double highest = parameter.rates.learning_rate.value_or(all.learning_rate);
  const double lowest = parameter.rates.min_learning_rate.value_or(all.min_learning_rate);
  const double rate = lowest + schedule * (highest - lowest);
  const bool decays = !parameter.traits.Meets(all.no_decay);
  const double decay = decays ? parameter.rates.weight_decay.value_or(all.weight_decay) : 0.0;

  const Tensor gradient = parameter.gradient * clip;
  Tensor& m = parameter.first_moment;
  Tensor& v = parameter.second_moment;
  m = all.beta1 * m + (1.0 - all.beta1) * gradient;
  v = all.beta2 * v + (1.0 - all.beta2) * gradient * gradient;
  const double updates = static_cast<double>(step + 1);
  const Tensor m_hat = m / (1.0 - std::pow(all.beta1, updates));
  const Tensor v_hat = v / (1.0 - std::pow(all.beta2, updates));
  const Tensor& w = parameter.kept;
  w.copy_(w - rate * (m_hat / (at::sqrt(v_hat) + all.epsilon) + decay * w));
}

Reference::Reference(const Config& config)
    : state_(std::make_unique<State>(State{config, reference::MakeParameters(config)})) {}

Reference::~Reference() = default;
Reference::Reference(Reference&&) noexcept = default;
Reference& Reference::operator=(Reference&&) noexcept = default;

LossSums Reference::Step(const Inputs& whole, double loss_scale, std::int64_t step,
                         ExpertChoices* choices) {
  const c10::AutoGradMode graph(true);
  LossSums sums;
  for (const ModuleConfig& module : state_->config.modules) state_->SetDropout(module, whole, step);
  const State::Losses losses = state_->Forward(whole, sums, step, choices);
  const Tensor loss = losses.sum * loss_scale + losses.auxiliary;
  if (loss.requires_grad()) loss.backward();  // not when everything is frozen
  state_->TakeGradients();
  state_->Update(step);
  return sums;
}

LossSums Reference::Evaluate(const Inputs& whole) {
  const at::NoGradGuard no_graph;
  LossSums sums;
  for (const ModuleConfig& module : state_->config.modules) state_->SetDropout(module, whole, {});
  state_->Forward(whole, sums);
  return sums;
}

double Reference::gradient_norm() const { return state_->gradient_norm; }

std::vector<TensorPiece> Reference::Tensors(TensorKind kind) const {
  std::vector<TensorPiece> pieces;
  for (const auto& [name, parameter] : state_->parameters) {
    const Tensor* tensor = nullptr;
    switch (kind) {
      case TensorKind::kParameter:
        tensor = &parameter.kept;
        break;
      case TensorKind::kGradient:
        tensor = &parameter.gradient;
        break;
      case TensorKind::kFirstMoment:
        tensor = &parameter.first_moment;
        break;
      case TensorKind::kSecondMoment:
        tensor = &parameter.second_moment;
        break;
    }
    if (tensor->defined()) pieces.push_back(WholePiece(name, *tensor));
  }
  return pieces;
}

void Reference::SetParameters(const std::vector<TensorPiece>& pieces) {
  const at::NoGradGuard no_graph;
  std::map<std::string, Tensor> fresh;
  for (const auto& [name, parameter] : state_->parameters) {
    fresh[name] = at::full_like(parameter.kept, std::numeric_limits<double>::quiet_NaN());
  }
  for (const TensorPiece& piece : pieces) {
    const auto whole = fresh.find(piece.name);
    if (whole == fresh.end()) Refuse(piece.name + ": the model has no such parameter");
    Insert(piece, whole->second);
  }
  for (const auto& [name, value] : fresh) {
    const auto unset = value.numel() - value.isfinite().sum().item<std::int64_t>();
    if (unset > 0) {
      Refuse(name + ": expected finite numbers, " + std::to_string(unset) + " of " +
             std::to_string(value.numel()) + " elements are not or are in no piece");
    }
  }
  for (const auto& [name, value] : fresh) {
    Parameter& parameter = state_->parameters.at(name);
    parameter.kept.copy_(value);
    SetFromKept(parameter, state_->config.run.precision);
  }
}

}  // namespace troupe
