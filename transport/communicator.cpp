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

void Communicator::Broadcast(void* data, std::size_t num_bytes, int root) {
  Run({CallOf(Operation::kBroadcast, num_bytes, root), AsBytes(data), AsBytes(data)});
}

void Communicator::AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) {
  Run({{Operation::kAllReduce, dtype, op, 0, 0, count}, AsBytes(data), AsBytes(data)});
}

void Communicator::AllGather(const void* input, std::size_t num_bytes, void* output) {
  Run({CallOf(Operation::kAllGather, num_bytes), AsBytes(input), AsBytes(output)});
}

void Communicator::ReduceScatter(const void* input, std::int64_t count, DType dtype, ReduceOp op,
                                 void* output) {
  Run({{Operation::kReduceScatter, dtype, op, 0, 0, count}, AsBytes(input), AsBytes(output)});
}

void Communicator::AllToAll(const void* input, std::span<const std::size_t> send_bytes,
                            void* output, std::span<const std::size_t> receive_bytes) {
  Run({CallOf(Operation::kAllToAll, 0), AsBytes(input), AsBytes(output), send_bytes,
       receive_bytes});
}

}  // namespace troupe
