// The parts of each stage in the order in which they run, their parameters, and where gradients
// flow. Parameters, gradients, memory estimates and operation counts follow this one list.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "kinds/parameter.hpp"
#include "layout/route.hpp"

namespace troupe {

/// Layers of a module, the projector of an edge, or the edge's newline row. Points into the
/// configuration.
struct StagePart {
  const ModuleConfig* module = nullptr;  ///< module of the layers; null: of an edge
  const EdgeConfig* edge = nullptr;      ///< edge of the projector or newline; null: layers
  bool newline = false;                  ///< the newline row, else the projector
  int pp = 0;                            ///< stage of `module`; 0 for an inline encoder
  bool trains = false;
  bool input_gradient = false;  ///< its input has a gradient: an earlier part trains

  bool is_projector() const { return edge != nullptr && !newline; }
  /// Returns whether it runs a backward, and so keeps activations for it.
  bool runs_backward() const { return trains || input_gradient; }
  /// Returns whether only adapters train: nearly every input has a gradient, and no weight. The
  /// adapters' own products, which are small, are in no count.
  bool has_adapters() const { return trains && module && module->lora; }
  /// Returns whether its weights have gradients, and whether its first input must have one.
  bool weight_gradient() const { return trains && !has_adapters(); }
  bool asks_input_gradient() const { return input_gradient || has_adapters(); }
};

/// Returns the parts of stage `pp` of `module`: inline encoders with their projectors, incoming
/// projectors, newline rows, own layers, outgoing projectors.
std::vector<StagePart> StageParts(const Config& config, const std::string& module, int pp);

/// Returns whether a part of the stage trains.
bool StageTrains(const Config& config, const std::string& module, int pp);

/// Returns whether the stage runs backward passes: it trains, or a stage upstream of it does. Then
/// the hop to the next stage of the module carries a gradient back.
bool RunsBackward(const Config& config, const std::string& module, int pp);

/// Returns whether the rows of `edge` carry a gradient back to their module. For an inline edge:
/// whether the encoder or its projector trains.
bool EdgeCarriesGradient(const Config& config, const EdgeConfig& edge);

/// Returns for each incoming link of the stage, the hop or the boundary edges, whether it carries a
/// gradient back.
std::vector<bool> InputsWithGradients(const Config& config, const std::string& module, int pp);

/// A rank's slice of a parameter that it has.
struct ParameterSlice {
  std::vector<std::int64_t> offsets;  ///< one per dimension
  Shape shape;
  bool owner = true;  ///< false if a rank of lower tp holds the same slice
};

/// Returns the slice of `spec` that the rank at a place of its stage holds; none of an expert that is
/// elsewhere. Throws LayoutError unless the number of key/value heads divides tp or is a multiple of it.
std::optional<ParameterSlice> SliceOf(const ParameterSpec& spec, const Layout& layout,
                                      const Coordinates& at);

/// Returns all parameters of stage `pp` of `module`, in the order in which they run: inline
/// encoders with their projectors, incoming projectors, own layers, outgoing projectors. The
/// weights q, k, v (and gate, up) of a layer are neighbours, so a program can multiply by them at
/// once.
std::vector<ParameterSpec> StageParameters(const Config& config, const std::string& module, int pp);

/// Returns the parameters of all stages of all modules, by name.
std::map<std::string, ParameterSpec> AllParameters(const Config& config);

/// The two weights of an adapter: A takes the layer's inputs, B gives its outputs.
enum class AdapterEnd { kIn, kOut };
/// Returns the name of an adapter's weight beside `weight`, as PEFT calls it:
/// "language.layers.0.self_attn.q_proj.lora_A.weight".
std::string AdapterName(const std::string& weight, AdapterEnd end);

/// Return the edges whose rows enter `module` over a boundary, and those whose source runs inside
/// it.
std::vector<const EdgeConfig*> IncomingEdges(const Config& config, const std::string& module);
std::vector<const EdgeConfig*> InlineEdges(const Config& config, const std::string& module);
/// Returns the boundary edges that leave `module`. All three keep the order of config.edges.
std::vector<const EdgeConfig*> OutgoingEdges(const Config& config, const std::string& module);

/// Returns the prefix of the names of an edge's projector: "vision_to_language".
std::string ProjectorName(const EdgeConfig& edge);
/// Returns whether a newline row ends the lines of the images that `edge` carries, since they are cut
/// into tiles. It belongs to the edge's projector, and is on the first stage of the destination.
bool HasNewline(const Config& config, const EdgeConfig& edge);
/// Returns its name: "vision_to_language.image_newline". Its shape is [width of the destination].
std::string NewlineName(const EdgeConfig& edge);
/// Returns the shape of the projector of `edge`, which has one.
ProjectorShape ProjectorShapeOf(const Config& config, const EdgeConfig& edge);

/// Returns the module with that name. Throws std::invalid_argument with the name if there is none.
const ModuleConfig& FindModule(const Config& config, const std::string& module);

}  // namespace troupe
