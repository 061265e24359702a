// The kernel of sums and maxima against the plain loop, to the bit.
#include "transport/reduce.hpp"

#include <cstring>
#include <memory>
#include <random>
#include <type_traits>
#include <vector>

#include <catch2/catch.hpp>

#include "gpu/kernels/device.hpp"
#include "gpu/stream.hpp"
#include "tests/gpu/memory_pool.hpp"
#include "transport/gpu/elements.hpp"

namespace troupe {
namespace {

/// Values of a type, large and small, of both signs, as bytes.
template <class T>
std::vector<std::byte> Values(std::size_t count, std::mt19937& random) {
  std::vector<T> values(count);
  std::normal_distribution<double> normal(0.0, 100.0);
  for (T& value : values) {
    const double number = normal(random);
    if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(static_cast<std::int64_t>(number));
    } else {
      value = static_cast<T>(number);
    }
  }
  std::vector<std::byte> bytes(count * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<std::byte> ValuesOf(DType dtype, std::size_t count, std::mt19937& random) {
  switch (dtype) {
    case DType::kFloat64:
      return Values<double>(count, random);
    case DType::kInt64:
      return Values<std::int64_t>(count, random);
    case DType::kInt32:
      return Values<std::int32_t>(count, random);
    case DType::kUInt8:
      return Values<std::uint8_t>(count, random);
    case DType::kBFloat16: {  // the first halves of floats
      const auto floats = Values<float>(count, random);
      std::vector<std::byte> bytes;
      for (std::size_t i = 0; i < count; ++i) {
        bytes.insert(bytes.end(), {floats[4 * i + 2], floats[4 * i + 3]});
      }
      return bytes;
    }
    case DType::kFloat32:
      break;
  }
  return Values<float>(count, random);
}

}  // namespace

TEST_CASE("members of a device are reduced as by the plain loop") {
  const auto dtype = GENERATE(DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kInt32,
                              DType::kUInt8, DType::kBFloat16);
  const auto op = GENERATE(ReduceOp::kSum, ReduceOp::kMax);
  const auto members = GENERATE(1, 3, gpu::Operands::kMost);
  const std::size_t count = GENERATE(1, 255, 1000);
  std::mt19937 random(17);
  const gpu::Stream stream(0);
  gpu::MemoryPool pool(0);
  std::vector<std::vector<std::byte>> inputs;
  std::vector<const std::byte*> pointers;
  std::vector<std::shared_ptr<void>> memory;
  gpu::Operands operands;
  for (int i = 0; i < members; ++i) {
    inputs.push_back(ValuesOf(dtype, count, random));
    memory.push_back(pool.Allocate(inputs.back().size(), stream));
    std::memcpy(memory.back().get(), inputs.back().data(), inputs.back().size());
    operands.inputs[i] = operands.outputs[i] = static_cast<std::byte*>(memory.back().get());
  }
  for (const auto& input : inputs) pointers.push_back(input.data());
  operands.num_inputs = operands.num_outputs = members;
  gpu::Reduce(stream, operands, static_cast<std::int64_t>(count), ElementOf(dtype),
              ReductionOf(op));
  std::vector<std::byte> expected(inputs[0].size());
  Reduce(pointers, static_cast<std::int64_t>(count), dtype, op, expected.data());
  stream.Synchronize();
  for (const auto& output : memory) {
    CHECK(std::memcmp(output.get(), expected.data(), expected.size()) == 0);
  }
}

}  // namespace troupe
