// What members of a group that share a device are reduced with. The plain loop is
// transport/reduce.hpp; gpu/kernels/device.hpp has the same on a stream.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::gpu {

enum class Element : std::uint8_t { kFloat32, kFloat64, kInt64, kInt32, kUInt8, kBFloat16 };
enum class Reduction : std::uint8_t { kSum, kMax };

/// Where inputs come from and where the result goes, on one device. Travels to it by value.
struct Operands {
  static constexpr int kMost = 64;

  const std::byte* inputs[kMost] = {};
  std::byte* outputs[kMost] = {};
  int num_inputs = 0;   ///< at least one
  int num_outputs = 0;  ///< each gets the whole result
};

}  // namespace troupe::gpu
