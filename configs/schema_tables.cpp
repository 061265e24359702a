#include <array>

#include "configs/schema.hpp"

namespace troupe {

std::span<const TableSpec> Tables() {
  static const auto kTables = std::to_array<TableSpec>({
      {"", "top level", "The file itself."},
      {"run", "[run]", "What the run is called and how long it lasts."},
      {"cluster", "[cluster]", "The devices of the job."},
      {"cluster.nodes.*", "[[cluster.nodes]]",
       "The machines of the job, where they are not all alike; in place of the count `nodes`. "
       "Files that extend each other replace the list as a whole."},
      {"transport", "[transport]", "How tensors travel between processes."},
      {"modules.*", "[modules.NAME]", "A part of the model, with its own layout on its own ranks."},
      {"modules.*.layout", "[modules.NAME.layout]",
       "How the module is cut. `layout = { ... }` replaces an inherited layout as a whole, since "
       "what is not said is 1; `layout.tp = 2` changes one size.",
       kEveryKind, true, [](const Target& t) { return !t.module->inline_in; }},
      {"modules.*.input", "[modules.NAME.input]",
       "What an encoder reads of a sample. Required for each \"vit\" where there are several.",
       KindsWhere([](const ModelConfig& model) { return model.field() || !model.computes(); }),
       false, [](const Target& t) { return t.module->input.has_value(); },
       [](const Target& t) { t.module->input.emplace(); }},
      {"modules.*.optimizer", "[modules.NAME.optimizer]",
       "The module's own values over `[optimizer]`.", kEveryKind, false,
       [](const Target& t) {
         const OptimizerOverride& own = t.module->optimizer;
         return own.learning_rate || own.min_learning_rate || own.weight_decay;
       }},
      {"edges.*.*", "[[edges]]",
       "Rows of one module flow into another. Files that extend each other merge edges by `from` "
       "and `to`; in `--set` and `--explain` an edge is `edges.FROM.TO`."},
      {"edges.*.*.through", "through of [[edges]]",
       "The projector on the edge. Without one the hidden sizes must be equal.", kEveryKind, false,
       [](const Target& t) { return t.edge->through.has_value(); },
       [](const Target& t) { t.edge->through.emplace(); }},
      {"schedule", "[schedule]",
       "How a step is cut into microbatches and in which order they run."},
      {"optimizer", "[optimizer]", "How parameters are updated."},
      {"data", "[data]", "The samples. Needed by \"vit\" and \"llama\" modules."},
      {"trace", "[trace]", "What is recorded during the run."},
      {"checkpoint", "[checkpoint]", "What is kept of a run, to resume from."},
  });
  return kTables;
}

}  // namespace troupe
