#include "transport/reduce.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "gpu/kernels/bfloat16.hpp"

namespace troupe {
namespace {

// Partial results of this many elements stay in the first-level cache while all inputs are added.
constexpr std::int64_t kBlock = 1024;

struct Sum {
  template <class T>
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};

struct Max {
  template <class T>
  static T Apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return (a < b || b != b) ? b : a;
    } else {
      return a < b ? b : a;
    }
  }
};

template <class T, class Op>
void Combine(const T* a, const T* b, std::int64_t count, T* __restrict output) {
  for (std::int64_t i = 0; i < count; ++i) output[i] = Op::Apply(a[i], b[i]);
}

template <class T, class Op>
void Accumulate(const T* a, std::int64_t count, T* __restrict output) {
  for (std::int64_t i = 0; i < count; ++i) output[i] = Op::Apply(output[i], a[i]);
}

template <class T, class Op>
void ReduceAs(std::span<const std::byte* const> inputs, std::int64_t count, std::byte* output) {
  T* const result = reinterpret_cast<T*>(output);
  const auto input = [&](std::size_t member) { return reinterpret_cast<const T*>(inputs[member]); };
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, count - begin);
    Combine<T, Op>(input(0) + begin, input(1) + begin, size, result + begin);
    for (std::size_t member = 2; member < inputs.size(); ++member)
      Accumulate<T, Op>(input(member) + begin, size, result + begin);
  }
}

template <class T>
void ReduceBy(std::span<const std::byte* const> inputs, std::int64_t count, ReduceOp op,
              std::byte* output) {
  if (op == ReduceOp::kSum) {
    ReduceAs<T, Sum>(inputs, count, output);
  } else {
    ReduceAs<T, Max>(inputs, count, output);
  }
}

/// Computes in float and rounds once at the end, so that a sum of many small numbers survives.
template <class Op>
void ReduceRounded(std::span<const std::byte* const> inputs, std::int64_t count,
                   std::byte* output) {
  const auto at = [](const std::byte* values, std::int64_t i) {
    return static_cast<float>(reinterpret_cast<const BFloat16*>(values)[i]);
  };
  auto* const result = reinterpret_cast<BFloat16*>(output);
  for (std::int64_t i = 0; i < count; ++i) {
    float value = at(inputs[0], i);
    for (std::size_t member = 1; member < inputs.size(); ++member)
      value = Op::Apply(value, at(inputs[member], i));
    result[i] = BFloat16(value);
  }
}

}  // namespace

DType PartialType(DType dtype, ReduceOp op) {
  return dtype == DType::kBFloat16 && op == ReduceOp::kSum ? DType::kFloat32 : dtype;
}

void ToPartial(const std::byte* values, std::int64_t count, DType dtype, std::byte* partial) {
  if (dtype != DType::kBFloat16) {
    if (count > 0) std::memcpy(partial, values, static_cast<std::size_t>(count) * SizeOf(dtype));
    return;
  }
  const auto* const from = reinterpret_cast<const BFloat16*>(values);
  auto* const to = reinterpret_cast<float*>(partial);
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

void FromPartial(const std::byte* partial, std::int64_t count, DType dtype, std::byte* values) {
  if (dtype != DType::kBFloat16) {
    if (count > 0) std::memcpy(values, partial, static_cast<std::size_t>(count) * SizeOf(dtype));
    return;
  }
  const auto* const from = reinterpret_cast<const float*>(partial);
  auto* const to = reinterpret_cast<BFloat16*>(values);
  for (std::int64_t i = 0; i < count; ++i) to[i] = BFloat16(from[i]);
}

void Reduce(std::span<const std::byte* const> inputs, std::int64_t count, DType dtype, ReduceOp op,
            std::byte* output) {
  if (count == 0) return;
  if (inputs.size() == 1) {
    std::memcpy(output, inputs[0], static_cast<std::size_t>(count) * SizeOf(dtype));
    return;
  }
  switch (dtype) {
    case DType::kFloat32:
      return ReduceBy<float>(inputs, count, op, output);
    case DType::kFloat64:
      return ReduceBy<double>(inputs, count, op, output);
    case DType::kInt64:
      return ReduceBy<std::int64_t>(inputs, count, op, output);
    case DType::kInt32:
      return ReduceBy<std::int32_t>(inputs, count, op, output);
    case DType::kUInt8:
      return ReduceBy<std::uint8_t>(inputs, count, op, output);
    case DType::kBFloat16:
      return op == ReduceOp::kSum ? ReduceRounded<Sum>(inputs, count, output)
                                  : ReduceRounded<Max>(inputs, count, output);
  }
}

void ReduceOver(std::vector<const std::byte*> inputs, std::int64_t count, DType dtype, ReduceOp op,
                std::byte* output) {
  if (std::ranges::find(inputs, output) == inputs.end()) {
    return Reduce(inputs, count, dtype, op, output);
  }
  const auto block = static_cast<std::int64_t>(kReduceBlockBytes / SizeOf(dtype));
  alignas(kCacheLineBytes) std::byte sums[kReduceBlockBytes];
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t size = std::min(block, count - begin);
    const std::size_t num_bytes = static_cast<std::size_t>(size) * SizeOf(dtype);
    Reduce(inputs, size, dtype, op, sums);
    std::memcpy(output, sums, num_bytes);
    output += num_bytes;
    for (const std::byte*& input : inputs) input += num_bytes;
  }
}

}  // namespace troupe
