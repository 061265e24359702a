#include "modules/torch/cuda/flat_adamw.hpp"

#ifdef TROUPE_TORCH_CUDA
#include "gpu/kernels/device.hpp"
#include "modules/torch/cuda/current_stream.hpp"

namespace troupe {

void ApplyAdamWOnDevice(const AdamWStep& step, const FlatRun& run) {
  auto* const rounded =
      run.rounded.defined() ? static_cast<std::uint16_t*>(run.rounded.mutable_data_ptr()) : nullptr;
  gpu::ApplyAdamW(StreamOf(run.values), step, run.values.numel(), run.gradients.data_ptr<float>(),
                  run.values.data_ptr<float>(), run.first_moments.data_ptr<float>(),
                  run.second_moments.data_ptr<float>(), rounded);
}

}  // namespace troupe

#else
#include <stdexcept>

namespace troupe {

void ApplyAdamWOnDevice(const AdamWStep&, const FlatRun&) {
  throw std::logic_error("AdamW: this build's libtorch knows no CUDA devices");
}

}  // namespace troupe
#endif
