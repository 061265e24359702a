#include "transport/communicator.hpp"

namespace troupe {
namespace {

const std::byte* AsBytes(const void* data) { return static_cast<const std::byte*>(data); }
std::byte* AsBytes(void* data) { return static_cast<std::byte*>(data); }

GroupCall CallOf(Operation operation, std::size_t num_bytes, int root = 0) {
  GroupCall call;
  call.operation = operation;
  call.root = root;
  call.count = static_cast<std::int64_t>(num_bytes);
  return call;
}

}  // namespace

Collective Collective::Broadcast(void* data, std::size_t num_bytes, int root) {
  return {CallOf(Operation::kBroadcast, num_bytes, root), AsBytes(data), AsBytes(data)};
}

Collective Collective::AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) {
  return {{Operation::kAllReduce, dtype, op, 0, 0, count}, AsBytes(data), AsBytes(data)};
}

Collective Collective::AllGather(const void* input, std::size_t num_bytes, void* output) {
  return {CallOf(Operation::kAllGather, num_bytes), AsBytes(input), AsBytes(output)};
}

Collective Collective::ReduceScatter(const void* input, std::int64_t count, DType dtype,
                                     ReduceOp op, void* output) {
  return {{Operation::kReduceScatter, dtype, op, 0, 0, count}, AsBytes(input), AsBytes(output)};
}

Collective Collective::AllToAll(const void* input, std::span<const std::size_t> send_bytes,
                                void* output, std::span<const std::size_t> receive_bytes) {
  return {CallOf(Operation::kAllToAll, 0), AsBytes(input), AsBytes(output), send_bytes,
          receive_bytes};
}

RingSizes RingSizesOf(int rank, int size, std::size_t sent_bytes, std::size_t received_bytes) {
  const auto members = static_cast<std::size_t>(size);
  RingSizes sizes{std::vector<std::size_t>(members), std::vector<std::size_t>(members)};
  sizes.send_bytes[static_cast<std::size_t>((rank + 1) % size)] = sent_bytes;
  sizes.receive_bytes[static_cast<std::size_t>((rank + size - 1) % size)] = received_bytes;
  return sizes;
}

void Communicator::Broadcast(void* data, std::size_t num_bytes, int root) {
  Run(Collective::Broadcast(data, num_bytes, root));
}

void Communicator::AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) {
  Run(Collective::AllReduce(data, count, dtype, op));
}

void Communicator::AllGather(const void* input, std::size_t num_bytes, void* output) {
  Run(Collective::AllGather(input, num_bytes, output));
}

void Communicator::ReduceScatter(const void* input, std::int64_t count, DType dtype, ReduceOp op,
                                 void* output) {
  Run(Collective::ReduceScatter(input, count, dtype, op, output));
}

void Communicator::AllToAll(const void* input, std::span<const std::size_t> send_bytes,
                            void* output, std::span<const std::size_t> receive_bytes) {
  Run(Collective::AllToAll(input, send_bytes, output, receive_bytes));
}

void Communicator::PassOn(const void* input, std::size_t sent_bytes, void* output,
                          std::size_t received_bytes) {
  const RingSizes sizes = RingSizesOf(rank(), size(), sent_bytes, received_bytes);
  AllToAll(input, sizes.send_bytes, output, sizes.receive_bytes);
}

}  // namespace troupe
