// Plans folders of adapters as PEFT reads them: adapter_model.safetensors, with names such as
// "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", and adapter_config.json.
#pragma once

#include "checkpoint/export_plan.hpp"

namespace troupe {

/// Plans one folder for a whole LLaVA, with its projector if that trains, or a single module; else
/// one for each module with adapters and each projector that trains. Reads no values. Throws
/// std::invalid_argument if no module has adapters, or another one trains as a whole;
/// std::runtime_error for a parameter that was not saved.
ExportPlan PlanAdapters(const Config& config, const SavedParameters& saved);

}  // namespace troupe
