// The device, the types and the implementation that a stage computes with; decided once per stage.
#pragma once

#include <torch/types.h>

#include "configs/config.hpp"
#include "modules/torch/programs.hpp"

namespace troupe {

struct Numerics {
  at::Device device = at::kCPU;
  at::ScalarType type = at::kFloat;        ///< of activations and of the weights that multiply them
  at::ScalarType state_type = at::kFloat;  ///< of parameters, gradients, moments and losses
  /// Operations of the library only, which any device has for any type; no result is read before
  /// the pass has ended, but the numbers of rows that go to experts. Otherwise RMSNorm, AdamW and what attention does between its products run as
  /// our own loops over host memory.
  bool portable = false;

  /// Whether parameters are kept in a longer type than the one they multiply in.
  bool mixed() const { return type != state_type; }
  at::TensorOptions options() const { return at::TensorOptions(device).dtype(type); }
  at::TensorOptions state_options() const { return at::TensorOptions(device).dtype(state_type); }
};

Numerics NumericsOf(Precision precision, const TorchOptions& options);

/// The same values on the device: `host` itself where that is the host, else queued there.
at::Tensor Upload(const at::Tensor& host, const at::Device& device);

/// The values of a small tensor in host memory: complete when the device has run what is queued.
at::Tensor BringHome(const at::Tensor& values);

}  // namespace troupe
