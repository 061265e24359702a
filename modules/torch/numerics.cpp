#include "modules/torch/numerics.hpp"

#include "modules/torch/tensors.hpp"

namespace troupe {

Numerics NumericsOf(Precision precision, const TorchOptions& options) {
  Numerics numerics;
  numerics.device = DeviceOf(options.device);
  numerics.type = ScalarTypeOf(precision);
  // Eight bits of a weight are too few for the sum of many small steps, and of gradients.
  const bool is_short = precision == Precision::kBFloat16;
  numerics.state_type = is_short ? at::kFloat : numerics.type;
  numerics.portable = options.portable || is_short || !numerics.device.is_cpu();
  return numerics;
}

at::Tensor Upload(const at::Tensor& host, const at::Device& device) {
  if (device.is_cpu()) return host;
  // Only from pinned memory is the copy queued; the library holds that memory until it has run.
  return host.contiguous().pin_memory().to(device, /*non_blocking=*/true);
}

at::Tensor BringHome(const at::Tensor& values) {
  if (values.device().is_cpu()) return values;
  at::Tensor home =
      at::empty(values.sizes(), values.options().device(at::kCPU).pinned_memory(true));
  return home.copy_(values, /*non_blocking=*/true);
}

}  // namespace troupe
