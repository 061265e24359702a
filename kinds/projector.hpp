// Projectors: the layers from the rows of an encoder to the width of a language model. Their part
// that needs no tensor library; modules/torch/projector.hpp computes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kinds/foreign.hpp"
#include "kinds/parameter.hpp"
#include "kinds/work.hpp"

namespace troupe {

enum class ProjectorKind {
  kLinear,       ///< one linear
  kMlp2,         ///< linear, GELU, linear
  kPixelShuffle  ///< the encoder joins squares of 2 x 2 patches; LayerNorm, linear, GELU, linear
};

struct ProjectorShape {
  ProjectorKind kind = ProjectorKind::kMlp2;
  std::int64_t in = 0;      ///< width of the rows that it takes
  std::int64_t hidden = 0;  ///< between the two linears; 0 where there is one
  std::int64_t out = 0;     ///< width of the rows that it emits
};

/// Adds its parameters.
///   layer_norm.{weight,bias}  [in]                     with kPixelShuffle
///   linear_1.{weight,bias}    [hidden, in], [hidden]   cut by outputs
///   linear_2.{weight,bias}    [out, hidden], [out]     cut by inputs
///   linear.{weight,bias}      [out, in], [out]         with kLinear, in place of the others
void AddProjectorParameters(const ProjectorShape& shape, ParameterList& list);

/// The row that ends each line of an image that is cut into tiles (ModelConfig::tile_side).
inline constexpr std::string_view kNewline = "image_newline";
/// Adds its parameter: image_newline [out].
void AddNewlineParameter(const ProjectorShape& shape, ParameterList& list);

/// Lists the operations of a forward of `rows` rows.
void ListProjector(const ProjectorShape& shape, std::int64_t rows, WorkList& work);

/// Returns the elements that it keeps of a row for its backward: the row, what the norm emits, and
/// inputs and outputs of the GELU, which are cut into `tp` parts.
std::int64_t KeptByProjector(const ProjectorShape& shape, int tp);

/// Returns kind and `hidden` of the projector of a whole LLaVA. Throws ModelFolderError for one that
/// is not supported.
ProjectorShape ReadForeignProjector(const ForeignConfig& whole);

/// Returns the name in a folder of a projector's parameter `own` ("linear_1.weight"); nothing if the
/// folder has no projector of that kind. `has` returns whether the folder has a tensor.
std::optional<std::string> ForeignProjectorName(
    ProjectorKind kind, std::string_view own,
    const std::function<bool(const std::string& tensor)>& has);
/// The names of the newline row in folders: on the Hub, and in memory and LLaVA's own code.
inline constexpr std::array<std::string_view, 2> kForeignNewlines = {"image_newline",
                                                                     "model.image_newline"};
/// Returns the one that a folder has; nothing if it has none.
std::optional<std::string> ForeignNewlineName(
    const std::function<bool(const std::string& tensor)>& has);

}  // namespace troupe
