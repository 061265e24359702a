// Buffers as tensors and back, without copying: each keeps the other's memory alive.
#pragma once

#include <string>
#include <torch/types.h>

#include "configs/config.hpp"
#include "transport/buffer.hpp"

namespace troupe {

at::ScalarType ScalarTypeOf(Precision precision);
at::ScalarType ScalarTypeOf(DType dtype);
/// Throws std::invalid_argument for a type that buffers do not have.
DType DTypeOf(at::ScalarType type);

/// Buffer::device() as the library names it, and back.
at::Device DeviceOf(int device);
int DeviceOf(const at::Device& device);

/// A tensor over the buffer's bytes, where they are. It must not be written to.
at::Tensor AsTensor(const Buffer& buffer);

/// The same after checking that the buffer is there, of `dtype` and of `num_dimensions`; throws
/// std::invalid_argument that starts with `what` and names the expected and the actual tensor.
at::Tensor AsTensor(const Buffer& buffer, DType dtype, std::size_t num_dimensions,
                    const std::string& what);

/// A buffer over the tensor's memory, wherever that is; only a tensor that is not contiguous is
/// copied.
Buffer AsBuffer(const at::Tensor& tensor);

}  // namespace troupe
