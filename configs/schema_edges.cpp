#include "configs/schema_keys.hpp"

namespace troupe {

std::vector<KeySpec> EdgeKeys() {
  return {
      {.table = "edges.*.*",
       .name = "from",
       .type = ValueType::kText,
       .required = true,
       .meaning = "The module that emits the rows.",
       .slot = [](const Target& t) -> Slot { return &t.edge->from; }},
      {.table = "edges.*.*",
       .name = "to",
       .type = ValueType::kText,
       .required = true,
       .meaning = "The module that takes them.",
       .slot = [](const Target& t) -> Slot { return &t.edge->to; }},
      {.table = "edges.*.*",
       .name = "credits",
       .type = ValueType::kInteger,
       .range = kCount,
       .unit = "microbatches",
       .role = KeyRole::kExecution,
       .meaning = "Microbatches that may be under way on this edge.",
       .slot = [](const Target& t) -> Slot { return &t.edge->credits; }},
      {.table = "edges.*.*.through",
       .name = "kind",
       .type = ValueType::kWord,
       .required = true,
       .words = {"mlp2"},
       .meaning = "Two linear layers with a GELU between them."},
      {.table = "edges.*.*.through",
       .name = "hidden",
       .type = ValueType::kInteger,
       .required = true,
       .range = kCount,
       .meaning = "Width between the two layers; a multiple of tp of the module it runs on.",
       .slot = [](const Target& t) -> Slot { return &t.edge->through->hidden; }},
      {.table = "edges.*.*.through",
       .name = "on",
       .type = ValueType::kWord,
       .words = {"from", "to"},
       .meaning = "At which end it runs, and so with whose layout and optimizer values.",
       .slot = [](const Target& t) -> Slot { return &t.edge->through->on; }},
      {.table = "edges.*.*.through",
       .name = "frozen",
       .type = ValueType::kBoolean,
       .meaning = "Whether its parameters stay as they are.",
       .slot = [](const Target& t) -> Slot { return &t.edge->through->frozen; }},
  };
}

}  // namespace troupe
