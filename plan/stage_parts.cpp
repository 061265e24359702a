#include "plan/stage_parts.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "plan/layer_split.hpp"

namespace troupe {
namespace {

StagePart LayersOf(const ModuleConfig& module, int pp, bool input_gradient) {
  return {.module = &module, .pp = pp, .trains = !module.frozen, .input_gradient = input_gradient};
}

StagePart ProjectorOf(const EdgeConfig& edge, bool input_gradient) {
  return {.edge = &edge, .trains = !edge.through->frozen, .input_gradient = input_gradient};
}

/// Adds the newline row of an edge that enters a first stage. Returns whether it trains.
bool AddNewline(const Config& config, const EdgeConfig& edge, std::vector<StagePart>& parts) {
  if (!HasNewline(config, edge)) return false;
  parts.push_back({.edge = &edge, .newline = true, .trains = !edge.through->frozen});
  return parts.back().trains;
}

bool ProjectsAt(const EdgeConfig& edge, ProjectorEnd end) {
  return edge.through && edge.through->on == end;
}

/// Adds the parts that run before the layers of a first stage. Returns whether the rows that they
/// emit have a gradient.
bool AddSources(const Config& config, const std::string& module, std::vector<StagePart>& parts) {
  bool any = false;
  for (const EdgeConfig* edge : InlineEdges(config, module)) {
    StagePart part = LayersOf(FindModule(config, edge->from), 0, false);
    parts.push_back(part);
    if (edge->through) parts.push_back(part = ProjectorOf(*edge, part.runs_backward()));
    any = any || part.runs_backward();
    any = AddNewline(config, *edge, parts) || any;
  }
  for (const EdgeConfig* edge : IncomingEdges(config, module)) {
    const bool carries = EdgeCarriesGradient(config, *edge);
    const bool projects = ProjectsAt(*edge, ProjectorEnd::kTo);
    if (projects) parts.push_back(ProjectorOf(*edge, carries));
    any = any || (projects ? parts.back().runs_backward() : carries);
    any = AddNewline(config, *edge, parts) || any;
  }
  return any;
}

/// Returns the edges with `module` at `end`.
std::vector<const EdgeConfig*> EdgesOf(const Config& config, const std::string& module,
                                       std::string EdgeConfig::*end, bool is_inline) {
  std::vector<const EdgeConfig*> result;
  for (const EdgeConfig& edge : config.edges) {
    if (edge.*end != module) continue;
    if (FindModule(config, edge.from).inline_in.has_value() == is_inline) result.push_back(&edge);
  }
  return result;
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

/// Adds the adapters beside those of the linear weights from specs[first] on that have one. A [rank,
/// in] is cut as the weight's inputs are, B [out, rank] as its outputs are.
void AddAdapters(const ModuleConfig& module, std::size_t first, std::vector<ParameterSpec>& specs) {
  const LoraConfig& lora = *module.lora;
  for (std::size_t i = first, end = specs.size(); i < end; ++i) {
    const ParameterSpec weight = specs[i];
    if (!weight.role || !lora.linears.Has(*weight.role)) continue;
    ParameterSpec a{.name = AdapterName(weight.name, AdapterEnd::kIn),
                    .shape = {lora.rank, weight.shape.at(1)},
                    .cut = weight.cut == Cut::kColumns ? Cut::kColumns : Cut::kNone,
                    .initial = Initial::kNormal,
                    // The variance of PEFT's uniform values.
                    .std = InverseRoot(3 * weight.shape[1]),
                    .part = weight.part,
                    .adapts = weight.name,
                    .layer = weight.layer,
                    .frozen = module.frozen};
    ParameterSpec b{.name = AdapterName(weight.name, AdapterEnd::kOut),
                    .shape = {weight.shape[0], lora.rank},
                    .cut = weight.cut == Cut::kColumns ? Cut::kNone : weight.cut,
                    .kv_heads = weight.kv_heads,
                    .part = weight.part,
                    .adapts = weight.name,
                    .layer = weight.layer,
                    .frozen = module.frozen};
    specs.push_back(std::move(a));
    specs.push_back(std::move(b));
  }
}

}  // namespace

std::string AdapterName(const std::string& weight, AdapterEnd end) {
  constexpr std::string_view kWeight = ".weight";
  return weight.substr(0, weight.size() - std::min(weight.size(), kWeight.size())) +
         (end == AdapterEnd::kIn ? ".lora_A" : ".lora_B") + std::string(kWeight);
}

std::vector<StagePart> StageParts(const Config& config, const std::string& module, int pp) {
  const ModuleConfig& own = FindModule(config, module);
  std::vector<StagePart> parts;
  std::vector<StagePart> sources;
  // Of a module that trains, every stage but the first gets rows that have a gradient.
  const bool input_gradient =
      (pp > 0 && !own.frozen) || AddSources(config, module, pp == 0 ? parts : sources);
  const StagePart layers = LayersOf(own, pp, input_gradient);
  parts.push_back(layers);
  if (pp + 1 < own.num_stages()) return parts;
  for (const EdgeConfig* edge : OutgoingEdges(config, module)) {
    if (!ProjectsAt(*edge, ProjectorEnd::kFrom)) continue;
    parts.push_back(ProjectorOf(*edge, layers.runs_backward()));
  }
  return parts;
}

bool StageTrains(const Config& config, const std::string& module, int pp) {
  return std::ranges::any_of(StageParts(config, module, pp), &StagePart::trains);
}

bool RunsBackward(const Config& config, const std::string& module, int pp) {
  return std::ranges::any_of(StageParts(config, module, pp), &StagePart::runs_backward);
}

bool EdgeCarriesGradient(const Config& config, const EdgeConfig& edge) {
  const ModuleConfig& from = FindModule(config, edge.from);
  if (from.inline_in) return !from.frozen || (edge.through && !edge.through->frozen);
  // The rows come from the edge's projector if that runs there, else from the layers. Projectors of
  // other edges on the same stage do not matter.
  const bool projects = ProjectsAt(edge, ProjectorEnd::kFrom);
  const std::vector<StagePart> parts = StageParts(config, from.name, from.num_stages() - 1);
  return std::ranges::any_of(parts, [&](const StagePart& part) {
    const bool gives_rows =
        projects ? part.is_projector() && *part.edge == edge : part.module == &from;
    return gives_rows && part.runs_backward();
  });
}

std::vector<bool> InputsWithGradients(const Config& config, const std::string& module, int pp) {
  if (pp > 0) return {RunsBackward(config, module, pp - 1)};
  std::vector<bool> carries;
  for (const EdgeConfig* edge : IncomingEdges(config, module)) {
    carries.push_back(EdgeCarriesGradient(config, *edge));
  }
  return carries;
}

std::optional<ParameterSlice> SliceOf(const ParameterSpec& spec, const Layout& layout,
                                      const Coordinates& at) {
  int tp = at.tp;
  int tp_size = layout.tp;
  if (spec.expert) {
    const ExpertCoordinates place = layout.ExpertsAt(at);
    const Interval local = PartOf(spec.expert->of, layout.ep, place.ep);
    if (spec.expert->number < local.begin || spec.expert->number >= local.end) return std::nullopt;
    tp = place.etp;
    tp_size = layout.etp;
  }
  ParameterSlice slice{std::vector<std::int64_t>(spec.shape.size(), 0), spec.shape, true};
  const auto narrow = [&slice](std::size_t dimension, const Interval& part) {
    slice.offsets.at(dimension) = part.begin;
    slice.shape.at(dimension) = part.size();
  };
  switch (spec.cut) {
    case Cut::kNone:
    case Cut::kSummed:
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
    const std::size_t first = specs.size();
    // What a run has trained is stored again, even if it is frozen now: a checkpoint is whole.
    const auto& weights = part.module ? part.module->weights : part.edge->through->weights;
    const bool from_folder = weights && !HuggingFaceFolder(*weights).empty();
    if (part.module) {
      const ModuleConfig& own = *part.module;
      ParameterList list(specs, own.name, own.keeps_parameters());
      own.model->AddParameters(PlaceOf(own, part.pp), list);
    } else {
      const EdgeConfig& edge = *part.edge;
      ParameterList list(specs, ProjectorName(edge), edge.through->frozen);
      if (part.newline) {
        AddNewlineParameter(ProjectorShapeOf(config, edge), list);
      } else {
        AddProjectorParameters(ProjectorShapeOf(config, edge), list);
      }
    }
    // A LLaVA-1.5 has no newline row. One that trains starts from random values then.
    const bool may_lack = part.newline && part.trains;
    for (std::size_t i = first; i < specs.size(); ++i) {
      specs[i].from_folder = from_folder && !may_lack;
    }
    if (part.module && part.module->lora) AddAdapters(*part.module, first, specs);
    const ModuleConfig& host = FindModule(config, module);
    // Newline rows are among those of the host.
    const ModelConfig* const model = part.newline  ? &*host.model
                                     : part.module ? &*part.module->model
                                                   : nullptr;
    if (model == nullptr || !model->cuts_rows() || !host.layout.cuts_rows()) continue;
    for (std::size_t i = first; i < specs.size(); ++i) {
      const bool cut = specs[i].layer || model->cuts_all_rows();
      if (cut && specs[i].cut == Cut::kNone) specs[i].cut = Cut::kSummed;
    }
  }
  return specs;
}

std::map<std::string, ParameterSpec> AllParameters(const Config& config) {
  std::map<std::string, ParameterSpec> all;
  for (const ModuleConfig& module : config.modules) {
    if (module.inline_in) continue;  // among those of its host
    for (int pp = 0; pp < module.num_stages(); ++pp) {
      for (ParameterSpec& spec : StageParameters(config, module.name, pp)) {
        std::string name = spec.name;
        all.emplace(std::move(name), std::move(spec));
      }
    }
  }
  return all;
}

std::vector<const EdgeConfig*> IncomingEdges(const Config& config, const std::string& module) {
  return EdgesOf(config, module, &EdgeConfig::to, false);
}

std::vector<const EdgeConfig*> InlineEdges(const Config& config, const std::string& module) {
  return EdgesOf(config, module, &EdgeConfig::to, true);
}

std::vector<const EdgeConfig*> OutgoingEdges(const Config& config, const std::string& module) {
  return EdgesOf(config, module, &EdgeConfig::from, false);
}

std::string ProjectorName(const EdgeConfig& edge) { return edge.from + "_to_" + edge.to; }

bool HasNewline(const Config& config, const EdgeConfig& edge) {
  return edge.through && FindModule(config, edge.from).model->tile_side() > 0;
}

std::string NewlineName(const EdgeConfig& edge) {
  return ProjectorName(edge) + "." + std::string(kNewline);
}

ProjectorShape ProjectorShapeOf(const Config& config, const EdgeConfig& edge) {
  return {.kind = edge.through->kind,
          .in = FindModule(config, edge.from).model->row_width(),
          .hidden = edge.through->hidden,
          .out = FindModule(config, edge.to).model->row_width()};
}

const ModuleConfig& FindModule(const Config& config, const std::string& module) {
  const ModuleConfig* found = config.Find(module);
  if (!found) throw std::invalid_argument("module \"" + module + "\": not in the configuration");
  return *found;
}

}  // namespace troupe
