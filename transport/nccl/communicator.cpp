#include "transport/nccl/communicator.hpp"

#include <functional>
#include <stdexcept>
#include <utility>

#include "gpu/check.hpp"
#include "gpu/device.hpp"
#include "gpu/memory.hpp"
#include "transport/collective_arguments.hpp"
#include "transport/gpu/memory_kind.hpp"
#include "transport/local_group.hpp"

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

  void Barrier() override {
    AllReduceOf("barrier", nothing_.get(), 1, DType::kInt32, ReduceOp::kMax);
  }

  void Broadcast(void* data, std::size_t num_bytes, int root) override {
    Require(RootError(root, size()));
    if (num_bytes == 0) return;
    if (OnHost(data, num_bytes, data, num_bytes))
      return member_.host->Broadcast(data, num_bytes, root);
    link_->Do("broadcast", [&](ncclComm_t comm) {
      return ncclBroadcast(data, data, num_bytes, ncclUint8, root, comm, stream_);
    });
  }

  void AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) override {
    const std::size_t num_bytes = CheckedBytes(LocalOperation::kAllReduce, count, dtype, op);
    if (count == 0) return;
    if (OnHost(data, num_bytes, data, num_bytes))
      return member_.host->AllReduce(data, count, dtype, op);
    AllReduceOf("all-reduce", data, count, dtype, op);
  }

  void AllGather(const void* input, std::size_t num_bytes, void* output) override {
    if (num_bytes == 0) return;
    if (OnHost(input, num_bytes, output, num_bytes))
      return member_.host->AllGather(input, num_bytes, output);
    link_->Do("all-gather", [&](ncclComm_t comm) {
      return ncclAllGather(input, output, num_bytes, ncclUint8, comm, stream_);
    });
  }

  void ReduceScatter(const void* input, std::int64_t count, DType dtype, ReduceOp op,
                     void* output) override {
    const std::size_t num_bytes = CheckedBytes(LocalOperation::kReduceScatter, count, dtype, op);
    if (count == 0) return;
    if (OnHost(input, num_bytes, output, num_bytes))
      return member_.host->ReduceScatter(input, count, dtype, op, output);
    link_->Do("reduce-scatter", [&](ncclComm_t comm) {
      return ncclReduceScatter(input, output, static_cast<std::size_t>(count), TypeOf(dtype),
                               OpOf(op), comm, stream_);
    });
  }

  void AllToAll(const void* input, std::span<const std::size_t> send_bytes, void* output,
                std::span<const std::size_t> receive_bytes) override {
    const auto members = static_cast<std::size_t>(size());
    Require(SizesError(members, send_bytes, receive_bytes));
    // A pointer without bytes is ignored if the other side has bytes. A member that neither sends
    // nor receives decides by its pointers.
    std::size_t sent = Total(send_bytes);
    std::size_t received = Total(receive_bytes);
    const bool nothing = sent + received == 0;
    if (nothing) sent = input != nullptr ? 1 : 0, received = output != nullptr ? 1 : 0;
    if (OnHost(input, sent, output, received))
      return member_.host->AllToAll(input, send_bytes, output, receive_bytes);
    if (nothing) return;
    link_->Do("all-to-all", [&](ncclComm_t comm) {
      return QueuePieces(comm, static_cast<const std::byte*>(input), send_bytes,
                         static_cast<std::byte*>(output), receive_bytes);
    });
  }

 private:
  void AllReduceOf(const char* operation, void* data, std::int64_t count, DType dtype,
                   ReduceOp op) {
    link_->Do(operation, [&](ncclComm_t comm) {
      return ncclAllReduce(data, data, static_cast<std::size_t>(count), TypeOf(dtype), OpOf(op),
                           comm, stream_);
    });
  }

  ncclResult_t QueuePieces(ncclComm_t comm, const std::byte* input,
                           std::span<const std::size_t> send_bytes, std::byte* output,
                           std::span<const std::size_t> receive_bytes) {
    ncclResult_t first = ncclGroupStart();
    const auto note = [&](ncclResult_t code) {
      if (first == ncclSuccess || first == ncclInProgress) first = code;
    };
    for (std::size_t i = 0; i < send_bytes.size(); ++i) {
      const auto peer = static_cast<int>(i);
      if (send_bytes[i] > 0) note(ncclSend(input, send_bytes[i], ncclUint8, peer, comm, stream_));
      if (receive_bytes[i] > 0)
        note(ncclRecv(output, receive_bytes[i], ncclUint8, peer, comm, stream_));
      input += send_bytes[i];
      output += receive_bytes[i];
    }
    note(ncclGroupEnd());
    return first;
  }

  std::size_t CheckedBytes(LocalOperation operation, std::int64_t count, DType dtype, ReduceOp op) {
    LocalCall call;
    call.operation = operation;
    call.count = count;
    call.dtype = dtype;
    call.op = op;
    Require(CountError(call));
    return BytesOfCount(count, dtype);
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
