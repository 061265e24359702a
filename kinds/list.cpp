#include "kinds/kind.hpp"
#include "kinds/llama.hpp"
#include "kinds/siglip.hpp"
#include "kinds/synthetic.hpp"
#include "kinds/vit.hpp"

namespace troupe {

static std::vector<const ModuleKind*>& List() {
  static std::vector<const ModuleKind*> list = {&kVit, &kSiglip, &kLlama, &kSynthetic};
  return list;
}

std::span<const ModuleKind* const> Kinds() { return List(); }

Model DefaultModel() { return SyntheticConfig(); }

void AddKind(const ModuleKind& kind) { List().push_back(&kind); }

}  // namespace troupe
