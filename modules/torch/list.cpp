#include <algorithm>
#include <stdexcept>
#include <string>

#include "modules/torch/llama.hpp"
#include "modules/torch/siglip.hpp"
#include "modules/torch/vit.hpp"

namespace troupe {

static std::vector<const TorchKind*>& TorchList() {
  static std::vector<const TorchKind*> list = {&kTorchVit, &kTorchSiglip, &kTorchLlama};
  return list;
}

std::vector<const TorchKind*> TorchKinds() { return TorchList(); }

void AddTorchKind(const TorchKind& kind) { TorchList().push_back(&kind); }

const TorchKind& TorchKindOf(const ModuleConfig& module) {
  const ModuleKind& kind = module.model.kind();
  const auto found = std::ranges::find(TorchList(), &kind, &TorchKind::kind);
  if (found != TorchList().end()) return **found;
  throw std::invalid_argument(module.name + ": expected a module that computes, got a " +
                              std::string(kind.word) + " one");
}

}  // namespace troupe
