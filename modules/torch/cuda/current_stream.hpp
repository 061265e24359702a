// Where libtorch queues what the calling thread computes. For files that are built for CUDA.
#pragma once

#include <c10/cuda/CUDAStream.h>
#include <torch/types.h>

#include "gpu/stream.hpp"

namespace troupe {

/// Of the tensor's GPU.
inline gpu::StreamView StreamOf(const at::Tensor& tensor) {
  return gpu::StreamView(c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream());
}

}  // namespace troupe
