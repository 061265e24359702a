#include <optional>
#include <stdexcept>
#include <utility>

#include "modules/torch/projector.hpp"
#include "modules/torch/stage_body.hpp"
#include "modules/torch/vit.hpp"

namespace troupe {
namespace {

/// [images] -> blocks -> [features, one projector per outgoing edge].
class VitBody : public StageBody {
 public:
  VitBody(const Config& config, const ModuleConfig& module, int pp, const ParameterStore& store,
          const TensorGroupPtr& group)
      : module_(module),
        first_(pp == 0),
        last_(pp + 1 == module.num_stages()),
        vit_(module, pp, store, group) {
    if (!last_) return;
    for (const EdgeConfig* edge : OutgoingEdges(config, module.name)) {
      const bool projects = edge->through && edge->through->on == ProjectorEnd::kFrom;
      projectors_.push_back(
          projects ? std::optional<Projector>(std::in_place, ProjectorName(*edge), store, group)
                   : std::nullopt);
    }
  }

  BodyResult Forward(const std::vector<at::Tensor>& inputs, const Inputs* data) override {
    const at::Tensor rows = vit_.RunLayers(
        first_ ? vit_.Embed(ImagesOf(RequireData(data, module_.name), module_)) : inputs.at(0));
    if (!last_) return {{rows}, {}, {}};
    const at::Tensor features = vit_.Features(rows);
    BodyResult result;
    for (const auto& projector : projectors_) {
      result.outputs.push_back(projector ? projector->Forward(features) : features);
    }
    return result;
  }

 private:
  ModuleConfig module_;
  bool first_;
  bool last_;
  Vit vit_;
  std::vector<std::optional<Projector>> projectors_;  ///< one per outgoing edge
};

}  // namespace

std::unique_ptr<StageBody> MakeVitBody(const Config& config, const ModuleConfig& module, int pp,
                                       const ParameterStore& store, const TensorGroupPtr& group) {
  return std::make_unique<VitBody>(config, module, pp, store, group);
}

at::Tensor ImagesOf(const Inputs& data, const ModuleConfig& encoder) {
  const auto found = data.images.find(encoder.name);
  if (found == data.images.end() || !found->second.defined()) {
    const std::int64_t size = encoder.vit.image_size;
    return at::empty({0, 3, size, size}, at::kFloat);
  }
  return AsTensor(found->second, DType::kFloat32, 4, encoder.name + ": images");
}

const Inputs& RequireData(const Inputs* data, const std::string& module) {
  if (!data) throw std::invalid_argument(module + ": expected input data, got none");
  return *data;
}

}  // namespace troupe
