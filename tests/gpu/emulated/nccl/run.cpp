// What the collectives of the emulated NCCL do when their turn comes.
#include <algorithm>
#include <cstring>

#include "tests/gpu/emulated/nccl/world.hpp"
#include "tests/gpu/emulated/world.hpp"
#include "transport/reduce.hpp"

namespace troupe::emulated {
namespace {

DType DTypeOf(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return DType::kFloat32;
    case ncclFloat64:
      return DType::kFloat64;
    case ncclInt64:
      return DType::kInt64;
    case ncclInt32:
      return DType::kInt32;
    case ncclBfloat16:
      return DType::kBFloat16;
    default:
      return DType::kUInt8;
  }
}

bool Agree(const NcclCall& a, const NcclCall& b) {
  return a.kind == b.kind && a.count == b.count && a.type == b.type && a.op == b.op &&
         a.root == b.root;
}

std::size_t InputBytes(const NcclCall& call, int size) {
  const std::size_t bytes = call.count * SizeOf(DTypeOf(call.type));
  return call.kind == NcclCall::Kind::kReduceScatter ? bytes * static_cast<std::size_t>(size)
                                                     : bytes;
}

/// The whole output of member `rank`, read out of the input of all members.
std::vector<std::byte> OutputOf(const std::vector<NcclCall>& calls, int rank) {
  const NcclCall& own = calls[static_cast<std::size_t>(rank)];
  const DType dtype = DTypeOf(own.type);
  const std::size_t bytes = own.count * SizeOf(dtype);
  if (own.kind == NcclCall::Kind::kBroadcast) {
    const std::byte* const from = calls[static_cast<std::size_t>(own.root)].input;
    return {from, from + bytes};
  }
  std::vector<std::byte> output;
  if (own.kind == NcclCall::Kind::kAllGather) {
    for (const NcclCall& call : calls) output.insert(output.end(), call.input, call.input + bytes);
    return output;
  }
  const std::size_t offset =
      own.kind == NcclCall::Kind::kReduceScatter ? static_cast<std::size_t>(rank) * bytes : 0;
  std::vector<const std::byte*> inputs;
  for (const NcclCall& call : calls) inputs.push_back(call.input + offset);
  output.resize(bytes);
  troupe::Reduce(inputs, static_cast<std::int64_t>(own.count), dtype,
                 own.op == ncclSum ? ReduceOp::kSum : ReduceOp::kMax, output.data());
  return output;
}

}  // namespace

void RunCollective(Link& link, std::uint64_t number, const NcclCall& call) {
  Clique& clique = *link.clique;
  const int size = clique.size;
  if (!MayUse(call.input, InputBytes(call, size), link.device, "a collective")) return;
  std::vector<NcclCall> calls;
  std::unique_lock lock(clique.mutex);
  Clique::Slot& slot = clique.slots[number];
  slot.calls.resize(static_cast<std::size_t>(size));
  slot.calls[static_cast<std::size_t>(link.rank)] = call;
  ++slot.arrived;
  clique.changed.notify_all();
  ++link.waiting;
  clique.changed.wait(lock, [&] { return slot.arrived == size || link.aborted; });
  --link.waiting;
  if (slot.arrived < size) {
    --slot.arrived;  // no other member may read this member's memory any more
    return;
  }
  calls = slot.calls;
  if (!std::all_of(calls.begin(), calls.end(), [&](const auto& it) { return Agree(it, call); })) {
    Fault("members make different calls of NCCL");
    return;
  }
  lock.unlock();
  const std::vector<std::byte> output = OutputOf(calls, link.rank);
  lock.lock();
  ++slot.read;
  clique.changed.notify_all();
  // All have come and read to the end, aborted or not: until then this member's memory is theirs.
  clique.changed.wait(lock, [&] { return slot.read == size; });
  lock.unlock();
  if (MayUse(call.output, output.size(), link.device, "a collective"))
    std::memcpy(call.output, output.data(), output.size());
}

namespace {

/// Takes pieces back that no member has begun to receive.
void Withdraw(Clique& clique, int rank, const NcclExchange& exchange) {
  for (const NcclExchange::Send& send : exchange.sends) {
    const auto withdrawn = std::erase_if(clique.mail[{rank, send.to}], [&](const NcclPiece& piece) {
      return piece.taken == send.piece.taken;
    });
    if (withdrawn > 0) *send.piece.taken = true;
  }
}

/// Receives everything, or until aborted.
void ReceiveAll(Link& link, const NcclExchange& exchange, std::unique_lock<std::mutex>& lock) {
  Clique& clique = *link.clique;
  for (const NcclExchange::Receive& receive : exchange.receives) {
    std::deque<NcclPiece>& pieces = clique.mail[{receive.from, link.rank}];
    clique.changed.wait(lock, [&] { return !pieces.empty() || link.aborted; });
    if (pieces.empty()) return;
    const NcclPiece piece = pieces.front();
    pieces.pop_front();
    lock.unlock();
    if (piece.num_bytes != receive.num_bytes) {
      Fault("a member sends " + std::to_string(piece.num_bytes) + " bytes, its peer receives " +
            std::to_string(receive.num_bytes));
    } else if (MayUse(receive.data, receive.num_bytes, link.device, "a receive")) {
      std::memcpy(receive.data, piece.data, piece.num_bytes);
    }
    lock.lock();
    *piece.taken = true;
    clique.changed.notify_all();
  }
}

}  // namespace

void RunExchange(Link& link, const NcclExchange& exchange) {
  Clique& clique = *link.clique;
  std::unique_lock lock(clique.mutex);
  for (const NcclExchange::Send& send : exchange.sends)
    clique.mail[{link.rank, send.to}].push_back(send.piece);
  clique.changed.notify_all();
  ReceiveAll(link, exchange, lock);
  const auto all_taken = [&] {
    return std::all_of(exchange.sends.begin(), exchange.sends.end(),
                       [](const auto& send) { return *send.piece.taken; });
  };
  clique.changed.wait(lock, [&] { return link.aborted || all_taken(); });
  Withdraw(clique, link.rank, exchange);
  clique.changed.wait(lock, all_taken);  // what a peer receives right now is its, aborted or not
}

}  // namespace troupe::emulated
