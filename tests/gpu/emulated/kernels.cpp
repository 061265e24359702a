// The functions of gpu/kernels/device.hpp: the plain loops, in the order of a stream.
#include <algorithm>
#include <cstring>

#include "gpu/check.hpp"
#include "gpu/kernels/bfloat16.hpp"
#include "gpu/kernels/device.hpp"
#include "gpu/kernels/rows.hpp"
#include "gpu/stream.hpp"
#include "tests/gpu/emulated/world.hpp"
#include "transport/reduce.hpp"

namespace troupe::gpu {
namespace {

struct Range {
  const void* data = nullptr;
  std::size_t num_bytes = 0;
};

/// Queues `loop`, which runs if the device may use all of `ranges` when its turn comes.
void Queue(StreamView stream, const char* name, std::vector<Range> ranges,
           std::function<void()> loop) {
  emulated::Launch(stream.get(), [=, device = stream.get()->device] {
    const bool may = std::all_of(ranges.begin(), ranges.end(), [&](const Range& range) {
      return emulated::MayUse(range.data, range.num_bytes, device, name);
    });
    if (may) loop();
  });
  TROUPE_CUDA(cudaGetLastError());
}

std::size_t Times(std::int64_t count, std::size_t bytes) {
  return static_cast<std::size_t>(count) * bytes;
}

}  // namespace

void GatherRows(StreamView stream, const std::byte* source, const std::int64_t* index,
                std::int64_t num_rows, std::size_t row_bytes, std::byte* destination) {
  Queue(stream, "GatherRows",
        {{index, Times(num_rows, 8)}, {destination, Times(num_rows, row_bytes)}},
        [=] { troupe::GatherRows(source, index, num_rows, row_bytes, destination); });
}

void ScatterRows(StreamView stream, const std::byte* source, const std::int64_t* index,
                 std::int64_t num_rows, std::size_t row_bytes, std::byte* destination) {
  Queue(stream, "ScatterRows", {{index, Times(num_rows, 8)}, {source, Times(num_rows, row_bytes)}},
        [=] { troupe::ScatterRows(source, index, num_rows, row_bytes, destination); });
}

void TakeRows(StreamView stream, std::byte* rows, const std::int64_t* index, std::int64_t num_rows,
              std::size_t row_bytes, std::byte* taken) {
  Queue(stream, "TakeRows", {{index, Times(num_rows, 8)}, {taken, Times(num_rows, row_bytes)}},
        [=] { troupe::TakeRows(rows, index, num_rows, row_bytes, taken); });
}

void GatherSlices(StreamView stream, const Slices& slices) {
  std::vector<Range> ranges;
  for (int i = 0; i < slices.count; ++i) {
    ranges.push_back({slices.from[i], slices.num_bytes[i]});
    ranges.push_back({slices.to[i], slices.num_bytes[i]});
  }
  if (!ranges.empty()) Queue(stream, "GatherSlices", ranges, [=] { troupe::GatherSlices(slices); });
}

void RowChecksums(StreamView stream, const std::byte* rows, std::int64_t num_rows,
                  std::size_t row_bytes, std::uint64_t* sums) {
  if (reinterpret_cast<std::uintptr_t>(rows) % 4 != 0 || row_bytes % 4 != 0 ||
      reinterpret_cast<std::uintptr_t>(sums) % 8 != 0)
    emulated::Fault("RowChecksums: words at addresses that are no multiple of their size");
  Queue(stream, "RowChecksums", {{rows, Times(num_rows, row_bytes)}, {sums, Times(num_rows, 8)}},
        [=] { troupe::RowChecksums(rows, num_rows, row_bytes, sums); });
}

void ApplyAdamW(StreamView stream, const AdamWStep& step, std::int64_t count, const float* gradient,
                float* value, float* first, float* second, std::uint16_t* rounded) {
  const std::size_t bytes = Times(count, sizeof(float));
  Queue(stream, "ApplyAdamW",
        {{gradient, bytes},
         {value, bytes},
         {first, bytes},
         {second, bytes},
         {rounded, rounded != nullptr ? bytes / 2 : 0}},
        [=] {
          troupe::ApplyAdamW(step, count, gradient, value, first, second);
          for (std::int64_t i = 0; rounded != nullptr && i < count; ++i)
            rounded[i] = BFloat16(value[i]).bits;
        });
}

void Reduce(StreamView stream, const Operands& operands, std::int64_t count, Element element,
            Reduction reduction) {
  constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kInt64,
                               DType::kInt32,   DType::kUInt8,   DType::kBFloat16};
  const DType dtype = kDTypes[static_cast<std::size_t>(element)];
  const std::size_t bytes = Times(count, SizeOf(dtype));
  std::vector<Range> ranges;
  for (int i = 0; i < operands.num_inputs; ++i) ranges.push_back({operands.inputs[i], bytes});
  for (int i = 0; i < operands.num_outputs; ++i) ranges.push_back({operands.outputs[i], bytes});
  Queue(stream, "Reduce", ranges, [=] {
    std::vector<std::byte> result(bytes);
    troupe::Reduce({operands.inputs, static_cast<std::size_t>(operands.num_inputs)}, count, dtype,
                   reduction == Reduction::kSum ? ReduceOp::kSum : ReduceOp::kMax, result.data());
    for (int i = 0; i < operands.num_outputs && bytes > 0; ++i)
      std::memcpy(operands.outputs[i], result.data(), bytes);
  });
}

}  // namespace troupe::gpu
