// Which layers of a module are alike, and which stages of a pipeline are, so that the search looks at
// each once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// Neighbouring stages that have as many layers of each kind.
struct StageRun {
  int stages = 1;
  std::int64_t layers = 0;            ///< of each stage
  std::vector<std::int64_t> of_kind;  ///< of each stage, by kind of layer
};

/// The kinds of layers of a module. Layers of a kind have the same operations.
class AlikeLayers {
 public:
  explicit AlikeLayers(const ModuleConfig& module);

  std::int64_t num_layers() const { return static_cast<std::int64_t>(kinds_.size()); }
  std::size_t num_kinds() const { return firsts_.size(); }
  /// Returns the first layer of a kind.
  std::int64_t FirstOf(std::size_t kind) const { return firsts_[kind]; }
  std::size_t KindOf(std::int64_t layer) const { return kinds_[static_cast<std::size_t>(layer)]; }

  /// Returns the stages of `module`, this module with some number of stages. The first stage and the
  /// last one are runs of one stage.
  const std::vector<StageRun>& RunsOf(const ModuleConfig& module);

 private:
  std::vector<std::size_t> kinds_;             ///< by layer
  std::vector<std::int64_t> firsts_;           ///< by kind
  std::map<int, std::vector<StageRun>> runs_;  ///< by number of stages
};

}  // namespace troupe
