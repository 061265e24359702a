// The parameters of each stage, and the slices that ranks hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "kinds/parameter.hpp"
#include "layout/route.hpp"

namespace troupe {

/// A rank's slice of a parameter.
struct ParameterSlice {
  std::vector<std::int64_t> offsets;  ///< one per dimension
  Shape shape;
  bool owner = true;  ///< false if a rank of lower tp holds the same slice
};

/// Returns the slice of `spec` that rank `tp` of `tp_size` holds. Throws LayoutError unless the
/// number of key/value heads divides tp or is a multiple of it.
ParameterSlice SliceOf(const ParameterSpec& spec, int tp, int tp_size);

/// Returns all parameters of stage `pp` of `module`, in the order in which they run: inline
/// encoders with their projectors, incoming projectors, own layers, outgoing projectors. The
/// weights q, k, v (and gate, up) of a layer are neighbours, so a program can multiply by them at
/// once.
std::vector<ParameterSpec> StageParameters(const Config& config, const std::string& module, int pp);

/// Return the edges whose rows enter `module` over a boundary, and those whose source runs inside
/// it.
std::vector<const EdgeConfig*> IncomingEdges(const Config& config, const std::string& module);
std::vector<const EdgeConfig*> InlineEdges(const Config& config, const std::string& module);
/// Returns the boundary edges that leave `module`. All three keep the order of config.edges.
std::vector<const EdgeConfig*> OutgoingEdges(const Config& config, const std::string& module);

/// Returns the prefix of the names of an edge's projector: "vision_to_language".
std::string ProjectorName(const EdgeConfig& edge);

/// Returns the module with that name. Throws std::invalid_argument with the name if there is none.
const ModuleConfig& FindModule(const Config& config, const std::string& module);

}  // namespace troupe
