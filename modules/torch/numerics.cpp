#include "modules/torch/numerics.hpp"

#include "modules/torch/cuda/kernels.hpp"
#include "modules/torch/tensors.hpp"

namespace troupe {
namespace {

/// A device's copy engine finishes all copies that are queued on it first, gigabytes of state that is
/// offloaded for example, even if they go the other way. Up to this size a kernel copies instead.
constexpr std::size_t kMostBytesByKernel = std::size_t{1} << 20;

bool GoesByKernel(const at::Tensor& tensor) { return tensor.nbytes() <= kMostBytesByKernel; }

}  // namespace

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
  const at::Tensor pinned = host.contiguous().pin_memory();
  if (!GoesByKernel(pinned)) return pinned.to(device, /*non_blocking=*/true);
  const at::Tensor copy =
      at::empty(pinned.sizes(), pinned.options().device(device).pinned_memory(false));
  CopyByKernel(pinned, copy);
  return copy;
}

at::Tensor BringHome(const at::Tensor& values) {
  if (values.device().is_cpu()) return values;
  at::Tensor home =
      at::empty(values.sizes(), values.options().device(at::kCPU).pinned_memory(true));
  if (!GoesByKernel(values)) return home.copy_(values, /*non_blocking=*/true);
  CopyByKernel(values.contiguous(), home);
  return home;
}

}  // namespace troupe
