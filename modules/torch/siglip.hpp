// The vision transformer of kinds/siglip.hpp: its body (siglip.cpp) and its part of the reference
// (siglip_reference.cpp).
#pragma once

#include "modules/torch/torch_kind.hpp"

namespace troupe {

extern const TorchKind kTorchSiglip;

namespace reference {

void AddSiglip(const ModuleConfig& module, const Maker& make);
at::Tensor EncodeSiglip(const FieldTensors& items, const ModuleConfig& module, const Parameters& w);

}  // namespace reference
}  // namespace troupe
