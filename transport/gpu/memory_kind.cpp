#include "transport/gpu/memory_kind.hpp"

#include "gpu/check.hpp"

namespace troupe {

MemoryOf LocateMemory(const void* data, std::size_t num_bytes, int device) {
  if (num_bytes == 0) return {};
  cudaPointerAttributes attributes{};
  TROUPE_CUDA(cudaPointerGetAttributes(&attributes, data));
  if (attributes.type == cudaMemoryTypeUnregistered || attributes.type == cudaMemoryTypeHost)
    return {MemoryKind::kHost, {}};
  if (attributes.type == cudaMemoryTypeManaged || attributes.device == device)
    return {MemoryKind::kDevice, {}};
  return {MemoryKind::kMixed, "expected memory of device " + std::to_string(device) +
                                  " or of the host, got memory of device " +
                                  std::to_string(attributes.device)};
}

MemoryOf LocateMemory(const void* input, std::size_t input_bytes, const void* output,
                      std::size_t output_bytes, int device) {
  const MemoryOf from = LocateMemory(input, input_bytes, device);
  if (input == output && input_bytes == output_bytes) return from;
  const MemoryOf to = LocateMemory(output, output_bytes, device);
  if (from.kind == MemoryKind::kMixed || to.kind == MemoryKind::kNone) return from;
  if (to.kind == MemoryKind::kMixed || from.kind == MemoryKind::kNone) return to;
  if (from.kind == to.kind) return from;
  return {MemoryKind::kMixed,
          from.kind == MemoryKind::kHost
              ? "expected input and output on one side, got input on the host, output on a device"
              : "expected input and output on one side, got input on a device, output on the host"};
}

}  // namespace troupe
