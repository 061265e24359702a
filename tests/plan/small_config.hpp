// Two encoders, one language model: enough to have every kind of parameter, edge and group.
#pragma once

#include "configs/config.hpp"
#include "kinds/llama.hpp"
#include "kinds/vit.hpp"

namespace troupe {

inline ModuleConfig SmallVit(const std::string& name) {
  ModuleConfig module;
  module.name = name;
  module.ranks = {0};
  VitConfig vit;
  vit.image_size = 8;
  vit.patch_size = 4;
  vit.hidden = 8;
  vit.layers = 3;
  vit.heads = 4;
  vit.mlp_hidden = 12;
  vit.feature_layer = -2;
  module.model = vit;
  return module;
}

/// "vision" and "audio" (vision transformers) into "language", a projector at either end.
inline Config SmallModulesConfig() {
  ModuleConfig language;
  language.name = "language";
  language.ranks = {1};
  LlamaConfig llama;
  llama.vocab = 21;
  llama.hidden = 16;
  llama.layers = 4;
  llama.heads = 8;
  llama.kv_heads = 2;
  llama.mlp_hidden = 24;
  llama.context = 16;
  language.model = llama;
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
