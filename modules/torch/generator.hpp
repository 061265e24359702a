// A whole model on one device that continues texts. This header shows nothing of libtorch.
#pragma once

#include <memory>
#include <vector>

#include "configs/config.hpp"
#include "modules/stage_program.hpp"
#include "modules/token_model.hpp"
#include "modules/torch/programs.hpp"

namespace troupe {

class Generator : public TokenModel {
 public:
  /// Returns all parameters in the run's precision, in host memory. Those of folders have no values
  /// yet (ParameterSpec::from_folder).
  virtual std::vector<TensorPiece> Parameters() = 0;
  /// Sets the values of all parameters, which may be those of Parameters themselves, filled.
  virtual void SetParameters(const std::vector<TensorPiece>& parameters) = 0;
};

/// Every module of `config` is whole, frozen and not inline, and one is a language model. Throws
/// std::invalid_argument for modules that do not compute or do not fit together.
std::unique_ptr<Generator> MakeGenerator(const Config& config, TorchOptions options);

}  // namespace troupe
