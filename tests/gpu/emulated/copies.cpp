// The calls that copy and fill memory.
#include <cstring>

#include "tests/gpu/emulated/world.hpp"

using namespace troupe::emulated;

namespace {

bool OnHost(const void* data) {
  const auto found = FindMemory(data);
  return !found || found->kind == Allocation::Kind::kPinned;
}

}  // namespace

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t num_bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (const cudaError_t code = Enter(stream->device, "cudaMemcpyAsync")) return code;
  const bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
  const bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
  if (kind != cudaMemcpyDefault && (OnHost(to) != to_host || OnHost(from) != from_host)) {
    Fault("cudaMemcpyAsync: the kind of copy is another than the pointers say");
    return Note(cudaErrorInvalidValue);
  }
  const bool checks_to = FindMemory(to).has_value();
  const bool checks_from = FindMemory(from).has_value();
  const int device = stream->device;
  const std::optional<std::size_t> spoilt = SpoiltByte(num_bytes);
  const std::size_t place =
      stream->Queue({Work::When::kUsesMemory, [=] {
                       if (checks_to && !MayUse(to, num_bytes, device, "a copy")) return;
                       if (checks_from && !MayUse(from, num_bytes, device, "a copy")) return;
                       std::memcpy(to, from, num_bytes);
                       if (spoilt) static_cast<std::byte*>(to)[*spoilt] ^= std::byte{4};
                     }});
  // Memory that is not pinned is used while the call lasts.
  if (!checks_to || !checks_from) stream->Reach(place);
  return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t num_bytes, cudaStream_t stream) {
  if (const cudaError_t code = Enter(stream->device, "cudaMemcpyPeerAsync")) return code;
  stream->Queue({Work::When::kUsesMemory, [=] {
                   if (!MayUse(to, num_bytes, to_device, "a peer copy")) return;
                   if (!MayUse(from, num_bytes, from_device, "a peer copy")) return;
                   std::memcpy(to, from, num_bytes);
                 }});
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t num_bytes, cudaStream_t stream) {
  if (const cudaError_t code = Enter(stream->device, "cudaMemsetAsync")) return code;
  stream->Queue({Work::When::kUsesMemory, [=, device = stream->device] {
                   if (MayUse(data, num_bytes, device, "a memset"))
                     std::memset(data, value, num_bytes);
                 }});
  return cudaSuccess;
}
