#include "transport/nccl/communicator.hpp"

#include <stdexcept>
#include <utility>

#include "gpu/check.hpp"
#include "gpu/device.hpp"
#include "gpu/memory.hpp"
#include "transport/collective_arguments.hpp"
#include "transport/gpu/memory_kind.hpp"

namespace troupe {
namespace {

ncclDataType_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ncclFloat32;
    case DType::kFloat64:
      return ncclFloat64;
    case DType::kInt64:
      return ncclInt64;
    case DType::kInt32:
      return ncclInt32;
    case DType::kUInt8:
      return ncclUint8;
    case DType::kBFloat16:
      break;
  }
  return ncclBfloat16;
}

ncclRedOp_t OpOf(ReduceOp op) { return op == ReduceOp::kSum ? ncclSum : ncclMax; }

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(DeviceMember member, std::shared_ptr<NcclLink> link)
      : member_(std::move(member)),
        stream_(member_.stream->get()),
        nothing_(gpu::AllocateOnDevice(member_.stream->device(), sizeof(std::int32_t))),
        link_(std::move(link)) {}
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override { link_->Leave(); }

  int rank() const override { return member_.host->rank(); }
  int size() const override { return member_.host->size(); }

  void Run(const Collective& mine) override {
    Require(ArgumentError(mine, size()));
    if (mine.call.operation == Operation::kBarrier) return Do(mine);
    // A pointer without bytes is ignored if the other side has bytes. A member of an all-to-all
    // that neither sends nor receives decides by its pointers.
    std::size_t read = InputBytes(mine, rank(), size());
    std::size_t written = OutputBytes(mine, size());
    const bool nothing = read + written == 0;
    if (nothing) {
      if (mine.call.operation != Operation::kAllToAll) return;
      read = mine.input != nullptr ? 1 : 0;
      written = mine.output != nullptr ? 1 : 0;
    }
    if (OnHost(mine.input, read, mine.output, written)) return member_.host->Run(mine);
    if (!nothing) Do(mine);
  }

 private:
  void Do(const Collective& mine) {
    link_->Do(NameOf(mine.call.operation), [&](ncclComm_t comm) { return Queue(comm, mine); });
  }

  ncclResult_t Queue(ncclComm_t comm, const Collective& mine) {
    const GroupCall& call = mine.call;
    const auto count = static_cast<std::size_t>(call.count);
    switch (call.operation) {
      case Operation::kBarrier:
        return ncclAllReduce(nothing_.get(), nothing_.get(), 1, ncclInt32, ncclMax, comm, stream_);
      case Operation::kBroadcast:
        return ncclBroadcast(mine.input, mine.output, count, ncclUint8, call.root, comm, stream_);
      case Operation::kAllReduce:
        return ncclAllReduce(mine.input, mine.output, count, TypeOf(call.dtype), OpOf(call.op),
                             comm, stream_);
      case Operation::kAllGather:
        return ncclAllGather(mine.input, mine.output, count, ncclUint8, comm, stream_);
      case Operation::kReduceScatter:
        return ncclReduceScatter(mine.input, mine.output, count, TypeOf(call.dtype), OpOf(call.op),
                                 comm, stream_);
      case Operation::kAllToAll:
        break;
    }
    return QueuePieces(comm, mine);
  }

  ncclResult_t QueuePieces(ncclComm_t comm, const Collective& mine) {
    const std::byte* input = mine.input;
    std::byte* output = mine.output;
    ncclResult_t first = ncclGroupStart();
    const auto note = [&](ncclResult_t code) {
      if (first == ncclSuccess || first == ncclInProgress) first = code;
    };
    for (int peer = 0; peer < size(); ++peer) {
      const std::size_t sent = mine.send_bytes[static_cast<std::size_t>(peer)];
      const std::size_t received = mine.receive_bytes[static_cast<std::size_t>(peer)];
      if (sent > 0) note(ncclSend(input, sent, ncclUint8, peer, comm, stream_));
      if (received > 0) note(ncclRecv(output, received, ncclUint8, peer, comm, stream_));
      input += sent;
      output += received;
    }
    note(ncclGroupEnd());
    return first;
  }

  /// Whether the call is on host memory.
  bool OnHost(const void* input, std::size_t input_bytes, const void* output,
              std::size_t output_bytes) {
    MemoryOf memory;
    try {
      const gpu::DeviceGuard guard(member_.stream->device());
      memory = LocateMemory(input, input_bytes, output, output_bytes, member_.stream->device());
    } catch (const gpu::CudaError& error) {
      RaiseFor(member_, error.what());
      throw;
    }
    if (memory.kind == MemoryKind::kMixed) Require(memory.error);
    return memory.kind == MemoryKind::kHost;
  }

  /// Refuses the call if `error` is not empty.
  void Require(const std::string& error) {
    if (error.empty()) return;
    RaiseFor(member_, error);
    throw std::invalid_argument(link_->name() + ": " + error);
  }

  const DeviceMember member_;
  const cudaStream_t stream_;
  const std::shared_ptr<void> nothing_;  // reduced by barriers
  const std::shared_ptr<NcclLink> link_;
};

}  // namespace

std::unique_ptr<Communicator> MakeNcclCommunicator(DeviceMember member,
                                                   std::shared_ptr<NcclLink> link) {
  return std::make_unique<NcclCommunicator>(std::move(member), std::move(link));
}

}  // namespace troupe
