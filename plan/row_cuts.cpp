#include "plan/row_cuts.hpp"

#include <algorithm>

#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

/// The rows of an item of the module where the rows of `module` come from.
std::int64_t ItemRows(const Config& config, const std::string& module) {
  const std::string* from = &module;
  for (auto in = IncomingEdges(config, *from); !in.empty(); in = IncomingEdges(config, *from)) {
    from = &in.front()->from;
  }
  return std::max<std::int64_t>(1, FindModule(config, *from).model->CutOver(1).item_rows);
}

RowCut CutOf(const Config& config, const std::string& module, const std::string& source) {
  const ModuleConfig& own = FindModule(config, module);
  RowCut cut = own.model->CutOver(own.layout.cp);
  if (cut.by == RowCut::By::kItems) cut.item_rows = ItemRows(config, source);
  return cut;
}

}  // namespace

RowCut SourceCut(const Config& config, const EdgeConfig& edge) {
  return CutOf(config, edge.from, edge.from);
}

RowCut DestinationCut(const Config& config, const EdgeConfig& edge) {
  RowCut cut = CutOf(config, edge.to, edge.from);
  const ModuleConfig& to = FindModule(config, edge.to);
  cut.pads = !config.data.packing;
  const bool projects = edge.through && edge.through->on == ProjectorEnd::kTo;
  if (to.layout.cuts_rows() && to.model->cuts_all_rows() && !projects) cut.slices = to.layout.tp;
  return cut;
}

bool CutsRows(const Config& config, const EdgeConfig& edge) {
  if (FindModule(config, edge.from).inline_in) return false;
  const RowCut to = DestinationCut(config, edge);
  return SourceCut(config, edge).parts > 1 || to.parts > 1 || to.slices > 1;
}

}  // namespace troupe
