// The vision transformer of kinds/vit.hpp: its body (vit.cpp) and its part of the reference
// (vit_reference.cpp).
#pragma once

#include "modules/torch/torch_kind.hpp"

namespace troupe {

extern const TorchKind kTorchVit;

namespace reference {

void AddVit(const ModuleConfig& module, const Maker& make);
at::Tensor EncodeVit(const FieldTensors& items, const ModuleConfig& module, const Parameters& w);

}  // namespace reference
}  // namespace troupe
