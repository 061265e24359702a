// Runs an encoder of any kind on its items, as separate stages or inline.
#pragma once

#include "modules/torch/torch_kind.hpp"

namespace troupe {

/// The items that `data` has for an encoder; none when it has no entry. Throws
/// std::invalid_argument unless they are of the row shape of its field.
FieldTensors ItemsOf(const Inputs& data, const ModuleConfig& encoder);

/// Stage `pp` of an encoder, with the projectors at the "from" end of its outgoing edges; `store`
/// must outlive it.
std::unique_ptr<StageBody> MakeEncoderBody(const Config& config, const ModuleConfig& module, int pp,
                                           const ParameterStore& store, const BodyGroups& groups);

}  // namespace troupe
