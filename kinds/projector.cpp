#include "kinds/projector.hpp"

#include <array>

#include "kinds/key.hpp"

namespace troupe {

void AddProjectorParameters(const ProjectorShape& shape, ParameterList& list) {
  if (shape.kind == ProjectorKind::kLinear) {
    list.AddWeight("linear", shape.out, shape.in, Cut::kNone);
    list.AddBias("linear", shape.out);
    return;
  }
  if (shape.kind == ProjectorKind::kPixelShuffle) list.AddLayerNorm("layer_norm", shape.in);
  list.AddWeight("linear_1", shape.hidden, shape.in, Cut::kRows);
  list.AddBias("linear_1", shape.hidden, Cut::kRows);
  list.AddWeight("linear_2", shape.out, shape.hidden, Cut::kColumns);
  list.AddBias("linear_2", shape.out);
}

void AddNewlineParameter(const ProjectorShape& shape, ParameterList& list) {
  list.AddNormal(std::string(kNewline), {shape.out}, InverseRoot(shape.out));
}

void ListProjector(const ProjectorShape& shape, std::int64_t rows, WorkList& work) {
  if (shape.kind == ProjectorKind::kLinear) {
    return work.AddLinear({.rows = rows, .out = shape.out, .in = shape.in, .first = true});
  }
  if (shape.kind == ProjectorKind::kPixelShuffle) work.AddElements(NormWork(rows, shape.in));
  work.AddLinear(
      {.rows = rows, .out = shape.hidden, .in = shape.in, .cut = Cut::kRows, .first = true});
  work.AddElements(
      {.rows = rows, .width = shape.hidden, .forward = 2.0, .backward = 3.0, .inside = true});
  work.AddLinear({.rows = rows, .out = shape.out, .in = shape.hidden, .cut = Cut::kColumns});
}

std::int64_t KeptByProjector(const ProjectorShape& shape, int tp) {
  const std::int64_t normed = shape.kind == ProjectorKind::kPixelShuffle ? shape.in : 0;
  return shape.in + normed + 2 * CeilDivide(shape.hidden, tp);
}

ProjectorShape ReadForeignProjector(const ForeignConfig& whole) {
  const bool original = whole.Has("mm_projector_type");  // as LLaVA's own code writes it
  const std::string type = original ? whole.Word("mm_projector_type", "") : "mlp2x_gelu";
  if (original && type == "linear") return {.kind = ProjectorKind::kLinear};
  if (type != "mlp2x_gelu") {
    whole.Refuse("mm_projector_type",
                 "expected \"mlp2x_gelu\" or \"linear\", got \"" + type + "\"");
  }
  const std::string activation = original ? "gelu" : whole.Word("projector_hidden_act", "gelu");
  if (activation != "gelu") {
    whole.Refuse("projector_hidden_act", "expected \"gelu\", got \"" + activation + "\"");
  }
  if (!original && !whole.Flag("multimodal_projector_bias", true)) {
    whole.Refuse("multimodal_projector_bias",
                 "a projector without biases is " + std::string(kNotSupportedYet));
  }
  const auto text = whole.Part("text_config");
  return {.kind = ProjectorKind::kMlp2,
          .hidden = (text == nullptr ? whole : *text).Integer("hidden_size", 4'096)};
}

namespace {

/// The beginnings of the names of each linear and norm, before ".weight" and ".bias".
struct Names {
  ProjectorKind kind;
  std::string_view first;   ///< "linear" or "linear_1"
  std::string_view second;  ///< "linear_2"
  std::string_view norm;    ///< "layer_norm"
};

/// On the Hub, in transformers since 4.52, and as LLaVA's and InternVL's own code writes them.
constexpr auto kNames = std::to_array<Names>({
    {ProjectorKind::kMlp2, "multi_modal_projector.linear_1", "multi_modal_projector.linear_2", ""},
    {ProjectorKind::kMlp2, "model.multi_modal_projector.linear_1",
     "model.multi_modal_projector.linear_2", ""},
    {ProjectorKind::kMlp2, "model.mm_projector.0", "model.mm_projector.2", ""},
    {ProjectorKind::kLinear, "multi_modal_projector.linear", "", ""},
    {ProjectorKind::kLinear, "model.multi_modal_projector.linear", "", ""},
    {ProjectorKind::kLinear, "model.mm_projector", "", ""},
    {ProjectorKind::kPixelShuffle, "multi_modal_projector.linear_1",
     "multi_modal_projector.linear_2", "multi_modal_projector.layer_norm"},
    {ProjectorKind::kPixelShuffle, "model.multi_modal_projector.linear_1",
     "model.multi_modal_projector.linear_2", "model.multi_modal_projector.layer_norm"},
    {ProjectorKind::kPixelShuffle, "mlp1.1", "mlp1.3", "mlp1.0"},
});

}  // namespace

std::optional<std::string> ForeignNewlineName(
    const std::function<bool(const std::string& tensor)>& has) {
  for (const std::string_view name : kForeignNewlines) {
    if (has(std::string(name))) return std::string(name);
  }
  return std::nullopt;
}

std::optional<std::string> ForeignProjectorName(
    ProjectorKind kind, std::string_view own,
    const std::function<bool(const std::string& tensor)>& has) {
  if (own == kNewline) return ForeignNewlineName(has);
  const std::size_t dot = own.rfind('.');
  const std::string_view part = own.substr(0, dot);
  for (const Names& names : kNames) {
    if (names.kind != kind || !has(std::string(names.first) + ".weight")) continue;
    const std::string_view stem =
        part == "layer_norm" ? names.norm : (part == "linear_2" ? names.second : names.first);
    return std::string(stem) + std::string(own.substr(dot));
  }
  return std::nullopt;
}

}  // namespace troupe
