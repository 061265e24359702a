// Converts element types and reductions to those of the kernels.
#pragma once

#include "gpu/kernels/reduce.hpp"
#include "transport/buffer.hpp"
#include "transport/communicator.hpp"

namespace troupe {

constexpr gpu::Element ElementOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return gpu::Element::kFloat32;
    case DType::kFloat64:
      return gpu::Element::kFloat64;
    case DType::kInt64:
      return gpu::Element::kInt64;
    case DType::kInt32:
      return gpu::Element::kInt32;
    case DType::kUInt8:
      return gpu::Element::kUInt8;
    case DType::kBFloat16:
      break;
  }
  return gpu::Element::kBFloat16;
}

constexpr gpu::Reduction ReductionOf(ReduceOp op) {
  return op == ReduceOp::kSum ? gpu::Reduction::kSum : gpu::Reduction::kMax;
}

}  // namespace troupe
