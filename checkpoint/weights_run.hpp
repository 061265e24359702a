// The parameters of earlier runs that modules and projectors start from: `weights = "run:DIR"`.
#pragma once

#include <map>
#include <string>

#include "checkpoint/saved_parameters.hpp"
#include "configs/config.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

/// Opens each run when it is first needed. A part starts from the tensors of the same names.
class WeightsRuns {
 public:
  explicit WeightsRuns(const Config& config);

  /// Throws std::runtime_error, one line, if the parameter's module or projector starts from a run
  /// that has none such of this shape. Reads headers only.
  void Require(const std::string& name, const Shape& shape);
  /// Fills the values of a piece if its module or projector starts from a run. Throws likewise, and
  /// if a file cannot be read.
  void Read(const TensorPiece& piece);

 private:
  /// Null if the part does not start from a run.
  const SavedParameters* SourceOf(const std::string& name);

  std::map<std::string, std::string> runs_;         ///< by module or projector
  std::map<std::string, SavedParameters> sources_;  ///< by directory
};

}  // namespace troupe
