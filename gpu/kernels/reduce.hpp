// The arguments of a reduction among group members that share a device. The plain loop is in
// transport/reduce.hpp, the device version in gpu/kernels/device.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::gpu {

enum class Element : std::uint8_t { kFloat32, kFloat64, kInt64, kInt32, kUInt8, kBFloat16 };
enum class Reduction : std::uint8_t { kSum, kMax };

/// Inputs and outputs of a reduction on one device. Passed to the kernel by value.
struct Operands {
  static constexpr int kMost = 64;

  const std::byte* inputs[kMost] = {};
  std::byte* outputs[kMost] = {};
  int num_inputs = 0;   ///< at least one
  int num_outputs = 0;  ///< each receives the whole result
};

}  // namespace troupe::gpu
