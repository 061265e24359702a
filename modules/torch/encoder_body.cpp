#include "modules/torch/encoder_body.hpp"

#include <optional>
#include <stdexcept>
#include <string>

#include "modules/torch/dropout.hpp"
#include "modules/torch/projector.hpp"
#include "modules/torch/tensors.hpp"

namespace troupe {
namespace {

/// [items] -> layers -> [features, one projector per outgoing edge].
class EncoderBody : public StageBody {
 public:
  EncoderBody(const Config& config, const ModuleConfig& module, int pp, const ParameterStore& store,
              const BodyGroups& groups)
      : module_(module),
        dropout_(config, module),
        first_(pp == 0),
        last_(pp + 1 == module.num_stages()),
        encoder_(TorchKindOf(module).make_encoder(module, pp, store, groups)) {
    if (!last_) return;
    for (const EdgeConfig* edge : OutgoingEdges(config, module.name)) {
      const bool projects = edge->through && edge->through->on == ProjectorEnd::kFrom;
      projectors_.push_back(
          projects ? std::optional<Projector>(std::in_place, *edge, store, groups.tensor)
                   : std::nullopt);
    }
  }

  BodyResult Forward(const std::vector<at::Tensor>& inputs, const ForwardPass& pass) override {
    const at::Tensor in =
        first_ ? encoder_->Embed(ItemsOf(RequireData(pass, module_.name), module_)) : inputs.at(0);
    const DropoutScope dropout(dropout_.RowsOf(pass, pass.table(), in, *encoder_));
    const at::Tensor rows = encoder_->RunLayers(in);
    if (!last_) return {{rows}, {}, {}};
    const at::Tensor features = encoder_->Features(rows);
    BodyResult result;
    for (const auto& projector : projectors_) {
      result.outputs.push_back(projector ? projector->Forward(features) : features);
    }
    return result;
  }

 private:
  ModuleConfig module_;
  RowDropout dropout_;
  bool first_;
  bool last_;
  std::unique_ptr<Encoder> encoder_;
  std::vector<std::optional<Projector>> projectors_;  ///< one per outgoing edge
};

}  // namespace

FieldTensors ItemsOf(const Inputs& data, const ModuleConfig& encoder) {
  const auto field = encoder.model->field();
  Shape shape = field->row_shape();
  shape.insert(shape.begin(), 0);
  const auto found = data.fields.find(encoder.name);
  if (found == data.fields.end() || !found->second.values.defined()) {
    return {at::empty(shape, at::kFloat), {}};
  }
  const auto& [buffer, lengths] = found->second;
  const std::string word(field->word());
  const at::Tensor values =
      AsTensor(buffer, DType::kFloat32, shape.size(), encoder.name + ": " + word);
  shape[0] = values.size(0);
  if (values.sizes() != at::IntArrayRef(shape)) {
    throw std::invalid_argument(encoder.name + ": expected " + word + " " + ToString(shape) +
                                ", got " + ToString(buffer.shape()));
  }
  return {values, lengths};
}

std::unique_ptr<StageBody> MakeEncoderBody(const Config& config, const ModuleConfig& module, int pp,
                                           const ParameterStore& store, const BodyGroups& groups) {
  return std::make_unique<EncoderBody>(config, module, pp, store, groups);
}

}  // namespace troupe
