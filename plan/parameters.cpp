#include "plan/parameters.hpp"

#include <stdexcept>
#include <utility>

#include "plan/layer_split.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

void AddProjector(std::vector<ParameterSpec>& specs, const Config& config, const EdgeConfig& edge) {
  const ProjectorConfig& projector = *edge.through;
  const std::int64_t in = FindModule(config, edge.from).model->row_width();
  const std::int64_t out = FindModule(config, edge.to).model->row_width();
  ParameterList list(specs, ProjectorName(edge),
                     projector.on == ProjectorEnd::kFrom ? edge.from : edge.to, projector.frozen);
  list.AddWeight("linear_1", projector.hidden, in, Cut::kRows);
  list.Add("linear_1.bias", {projector.hidden}, Cut::kRows);
  list.AddWeight("linear_2", out, projector.hidden, Cut::kColumns);
  list.Add("linear_2.bias", {out});
}

template <class Accept>
std::vector<const EdgeConfig*> EdgesWhere(const Config& config, Accept accept) {
  std::vector<const EdgeConfig*> result;
  for (const EdgeConfig& edge : config.edges) {
    if (accept(edge)) result.push_back(&edge);
  }
  return result;
}

bool IsInline(const Config& config, const EdgeConfig& edge) {
  return FindModule(config, edge.from).inline_in.has_value();
}

/// Returns the rows [begin, end) of dimension 0 of key/value heads that a rank holds, and whether
/// it owns them.
std::pair<Interval, bool> KeyValueRows(const ParameterSpec& spec, int tp, int tp_size) {
  const std::int64_t rows = spec.shape.at(0);
  if (spec.kv_heads % tp_size == 0) return {PartOf(rows, tp_size, tp), true};
  if (tp_size % spec.kv_heads != 0) {
    throw LayoutError(spec.name + ": " + std::to_string(spec.kv_heads) +
                      " key/value heads cannot be shared by tp " + std::to_string(tp_size));
  }
  const std::int64_t sharing = tp_size / spec.kv_heads;
  const std::int64_t head_rows = rows / spec.kv_heads;
  const std::int64_t head = tp / sharing;
  return {{head * head_rows, (head + 1) * head_rows}, tp % sharing == 0};
}

}  // namespace

ParameterSlice SliceOf(const ParameterSpec& spec, int tp, int tp_size) {
  ParameterSlice slice{std::vector<std::int64_t>(spec.shape.size(), 0), spec.shape, true};
  const auto narrow = [&slice](std::size_t dimension, const Interval& part) {
    slice.offsets.at(dimension) = part.begin;
    slice.shape.at(dimension) = part.size();
  };
  switch (spec.cut) {
    case Cut::kNone:
      slice.owner = tp == 0;
      break;
    case Cut::kRows:
      narrow(0, PartOf(spec.shape.at(0), tp_size, tp));
      break;
    case Cut::kColumns:
      narrow(1, PartOf(spec.shape.at(1), tp_size, tp));
      break;
    case Cut::kKeyValueRows: {
      const auto [rows, owner] = KeyValueRows(spec, tp, tp_size);
      narrow(0, rows);
      slice.owner = owner;
    }
  }
  return slice;
}

std::vector<ParameterSpec> StageParameters(const Config& config, const std::string& module,
                                           int pp) {
  std::vector<ParameterSpec> specs;
  for (const StagePart& part : StageParts(config, module, pp)) {
    if (part.module) {
      const ModuleConfig& own = *part.module;
      ParameterList list(specs, own.name, own.name, own.frozen);
      own.model->AddParameters(PlaceOf(own, part.pp), list);
    } else {
      AddProjector(specs, config, *part.edge);
    }
  }
  return specs;
}

std::vector<const EdgeConfig*> IncomingEdges(const Config& config, const std::string& module) {
  return EdgesWhere(
      config, [&](const EdgeConfig& edge) { return edge.to == module && !IsInline(config, edge); });
}

std::vector<const EdgeConfig*> InlineEdges(const Config& config, const std::string& module) {
  return EdgesWhere(
      config, [&](const EdgeConfig& edge) { return edge.to == module && IsInline(config, edge); });
}

std::vector<const EdgeConfig*> OutgoingEdges(const Config& config, const std::string& module) {
  return EdgesWhere(config, [&](const EdgeConfig& edge) {
    return edge.from == module && !IsInline(config, edge);
  });
}

std::string ProjectorName(const EdgeConfig& edge) { return edge.from + "_to_" + edge.to; }

const ModuleConfig& FindModule(const Config& config, const std::string& module) {
  const ModuleConfig* found = config.Find(module);
  if (!found) throw std::invalid_argument("module \"" + module + "\": not in the configuration");
  return *found;
}

}  // namespace troupe
