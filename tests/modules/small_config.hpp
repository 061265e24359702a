// Two encoders, one language model: enough to have every kind of parameter, edge and group.
#pragma once

#include "configs/config.hpp"

namespace troupe {

inline ModuleConfig SmallVit(const std::string& name) {
  ModuleConfig module;
  module.name = name;
  module.kind = ModuleKind::kVit;
  module.ranks = {0};
  module.vit = {.image_size = 8,
                .patch_size = 4,
                .hidden = 8,
                .layers = 3,
                .heads = 4,
                .mlp_hidden = 12,
                .feature_layer = -2};
  return module;
}

/// "vision" and "audio" (vision transformers) into "language", a projector at either end.
inline Config SmallModulesConfig() {
  ModuleConfig language;
  language.name = "language";
  language.kind = ModuleKind::kLlama;
  language.ranks = {1};
  language.llama = {.vocab = 21,
                    .hidden = 16,
                    .layers = 4,
                    .heads = 8,
                    .kv_heads = 2,
                    .mlp_hidden = 24,
                    .context = 16};
  Config config;
  config.modules = {SmallVit("vision"), SmallVit("audio"), language};
  config.edges = {{.from = "vision",
                   .to = "language",
                   .through = ProjectorConfig{.hidden = 12, .on = ProjectorEnd::kFrom}},
                  {.from = "audio",
                   .to = "language",
                   .through = ProjectorConfig{.hidden = 20, .on = ProjectorEnd::kTo}}};
  return config;
}

}  // namespace troupe
