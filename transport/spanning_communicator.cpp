// One member's view of a group that spans processes.
//
// The members of one process meet in their local group first; a member alone in its process skips
// that. Their leader communicates with the other leaders, and then the local group shares the
// result. No message is open on the plane while a member is in the local group, so a local failure
// leaves none open.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "transport/collective_arguments.hpp"
#include "transport/reduce.hpp"
#include "transport/spanning_exchange.hpp"
#include "transport/spanning_group.hpp"
#include "transport/spanning_pieces.hpp"

namespace troupe {
namespace {

GroupCall CallOf(LocalOperation operation, std::int64_t count) {
  GroupCall call;
  call.operation = operation;
  call.count = count;
  return call;
}

GroupCall ReductionOf(LocalOperation operation, std::int64_t count, DType dtype, ReduceOp op) {
  GroupCall call = CallOf(operation, count);
  call.dtype = dtype;
  call.op = op;
  return call;
}

class SpanningCommunicator final : public Communicator {
 public:
  /// `local` is this member's view of its process's group, null if it is the only member there.
  SpanningCommunicator(std::shared_ptr<const SpanningGroup> group, int rank,
                       std::unique_ptr<Communicator> local)
      : group_(std::move(group)),
        rank_(rank),
        leads_(rank == group_->own().leader()),
        local_(std::move(local)),
        exchange_(group_, rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  void Barrier() override;
  void Broadcast(void* data, std::size_t num_bytes, int root) override;
  void AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) override;
  void AllGather(const void* input, std::size_t num_bytes, void* output) override;
  void ReduceScatter(const void* input, std::int64_t count, DType dtype, ReduceOp op,
                     void* output) override;
  void AllToAll(const void* input, std::span<const std::size_t> send_bytes, void* output,
                std::span<const std::size_t> receive_bytes) override;

 private:
  /// Performs one operation: runs `body` after the members of this process have agreed on `call`.
  /// `error` is not empty if this member's arguments are illegal.
  template <class Body>
  void Perform(const GroupCall& call, const std::string& error, Body body);
  /// Throws std::logic_error on all members of this process if their calls differ.
  void AgreeLocally(const GroupCall& call);
  template <class Body>
  void Locally(Body body);
  /// Whether sums are taken in two steps: within processes, then between them.
  bool InParts() const { return group_->parties.size() < group_->homes.size(); }
  /// The sum over all members, on the leaders.
  void AllReduceAs(std::byte* data, std::int64_t count, DType dtype, ReduceOp op);
  void ReduceScatterDirectly(const std::byte* input, std::size_t num_bytes, const GroupCall& call,
                             std::byte* output);
  void ReduceScatterByParty(const std::byte* input, const GroupCall& call, std::byte* output);

  const std::vector<int>& mates() const { return group_->own().members; }
  std::string operation() const { return NameOf(call_) + " " + std::to_string(number_); }

  const std::shared_ptr<const SpanningGroup> group_;
  const int rank_;
  const bool leads_;
  const std::unique_ptr<Communicator> local_;
  SpanningExchange exchange_;
  std::uint64_t number_ = 0;  // of the operation in progress, from 1
  GroupCall call_;            // the operation in progress
  Buffer sums_;               // a member, since messages may still use it after a failure
};

template <class Body>
void SpanningCommunicator::Perform(const GroupCall& call, const std::string& error, Body body) {
  ++number_;
  call_ = call;
  group_->abort->ThrowIfRaised();
  try {
    if (!error.empty())
      throw std::invalid_argument(group_->Prefix() + "member " + std::to_string(rank_) + ": " +
                                  error);
    AgreeLocally(call);
    exchange_.Begin(call, number_);
    body();
  } catch (const Aborted&) {
    exchange_.Drain();
    throw;
  } catch (const std::exception& failure) {
    // The other members wait for this one, and the plane releases the memory only after an abort.
    group_->abort->Raise(failure.what());
    exchange_.Drain();
    throw;
  }
}

template <class Body>
void SpanningCommunicator::Locally(Body body) {
  if (local_ == nullptr) return;
  try {
    body(*local_);
  } catch (const Aborted&) {
    group_->abort->ThrowIfRaised();
    throw Aborted(group_->Prefix() + operation() + ": a member left this process before this call");
  }
}

void SpanningCommunicator::AgreeLocally(const GroupCall& call) {
  std::vector<GroupCall> calls(mates().size());
  Locally([&](Communicator& local) { local.AllGather(&call, sizeof(call), calls.data()); });
  if (local_ == nullptr) return;
  for (std::size_t i = 1; i < calls.size(); ++i)
    if (!SameCall(calls[0], calls[i]))
      throw std::logic_error(group_->Prefix() + "member " + std::to_string(mates()[0]) +
                             " called " + ToString(calls[0]) + ", member " +
                             std::to_string(mates()[i]) + " called " + ToString(calls[i]));
}

void SpanningCommunicator::Barrier() {
  Perform(CallOf(LocalOperation::kBarrier, 0), {}, [&] {
    if (leads_) exchange_.Barrier();
    Locally([](Communicator& local) { local.Barrier(); });
  });
}

void SpanningCommunicator::Broadcast(void* data, std::size_t num_bytes, int root) {
  GroupCall call = CallOf(LocalOperation::kBroadcast, static_cast<std::int64_t>(num_bytes));
  call.root = root;
  Perform(call, RootError(root, size()), [&] {
    const auto party =
        std::find_if(group_->parties.begin(), group_->parties.end(),
                     [&](const Party& other) { return other.process == group_->home(root); });
    const auto place = std::find(mates().begin(), mates().end(), root);
    const bool leader_lacks = place != mates().end() && root != group_->own().leader();
    const auto share = [&](int from) {
      Locally([&](Communicator& local) { local.Broadcast(data, num_bytes, from); });
    };
    if (leader_lacks) share(static_cast<int>(place - mates().begin()));
    if (leads_)
      exchange_.Broadcast(static_cast<std::byte*>(data), num_bytes,
                          static_cast<std::size_t>(party - group_->parties.begin()));
    if (leader_lacks) {
      // Keeps members of this process from returning before the other processes allow it.
      Locally([](Communicator& local) { local.Barrier(); });
    } else {
      share(0);
    }
  });
}

void SpanningCommunicator::AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) {
  const GroupCall call = ReductionOf(LocalOperation::kAllReduce, count, dtype, op);
  Perform(call, CountError(call), [&] {
    const std::size_t num_bytes = static_cast<std::size_t>(count) * SizeOf(dtype);
    const DType partial = InParts() ? PartialType(dtype, op) : dtype;
    auto* const values = static_cast<std::byte*>(data);
    if (partial == dtype) {
      AllReduceAs(values, count, dtype, op);
    } else {
      sums_ = Buffer::AllocateBytes(static_cast<std::size_t>(count) * SizeOf(partial));
      ToPartial(values, count, dtype, sums_.data());
      AllReduceAs(sums_.data(), count, partial, op);
      if (leads_) FromPartial(sums_.data(), count, dtype, values);
      sums_ = {};
    }
    Locally([&](Communicator& local) { local.Broadcast(data, num_bytes, 0); });
  });
}

void SpanningCommunicator::AllReduceAs(std::byte* data, std::int64_t count, DType dtype,
                                       ReduceOp op) {
  Locally([&](Communicator& local) { local.AllReduce(data, count, dtype, op); });
  if (leads_) exchange_.AllReduce(data, count, dtype, op);
}

void SpanningCommunicator::AllGather(const void* input, std::size_t num_bytes, void* output) {
  const GroupCall call = CallOf(LocalOperation::kAllGather, static_cast<std::int64_t>(num_bytes));
  Perform(call, {}, [&] {
    auto* const target = static_cast<std::byte*>(output);
    const auto row = [&](int member) {
      return target + static_cast<std::size_t>(member) * num_bytes;
    };
    if (local_ == nullptr) {
      Copy(row(rank_), input, num_bytes);
    } else {
      const Buffer rows = Buffer::AllocateBytes(mates().size() * num_bytes);
      Locally([&](Communicator& local) { local.AllGather(input, num_bytes, rows.data()); });
      for (std::size_t i = 0; i < mates().size(); ++i)
        Copy(row(mates()[i]), rows.data() + i * num_bytes, num_bytes);
    }
    if (leads_) exchange_.AllGather(target, num_bytes);
    const std::size_t all_bytes = group_->homes.size() * num_bytes;
    Locally([&](Communicator& local) { local.Broadcast(output, all_bytes, 0); });
  });
}

void SpanningCommunicator::ReduceScatter(const void* input, std::int64_t count, DType dtype,
                                         ReduceOp op, void* output) {
  const GroupCall call = ReductionOf(LocalOperation::kReduceScatter, count, dtype, op);
  Perform(call, CountError(call), [&] {
    const std::size_t num_bytes = static_cast<std::size_t>(count) * SizeOf(dtype);
    const auto* const source = static_cast<const std::byte*>(input);
    auto* const target = static_cast<std::byte*>(output);
    if (InParts()) {
      ReduceScatterByParty(source, call, target);
    } else {
      ReduceScatterDirectly(source, num_bytes, call, target);
    }
  });
}

void SpanningCommunicator::ReduceScatterDirectly(const std::byte* input, std::size_t num_bytes,
                                                 const GroupCall& call, std::byte* output) {
  std::vector<ByteRange> slices;
  for (std::size_t i = 0; i < group_->parties.size(); ++i)
    slices.push_back({i * num_bytes, (i + 1) * num_bytes});
  exchange_.ReduceScatter(input, slices, call.dtype, call.op, output);
}

void SpanningCommunicator::ReduceScatterByParty(const std::byte* input, const GroupCall& call,
                                                std::byte* output) {
  // Groups the rows by party, so that a party's slice is contiguous however its members are mixed.
  const DType partial = PartialType(call.dtype, call.op);
  const auto count = static_cast<std::size_t>(call.count);
  const std::size_t num_bytes = count * SizeOf(partial);
  sums_ = Buffer::AllocateBytes(group_->homes.size() * num_bytes);
  std::vector<ByteRange> slices;
  std::size_t end = 0;
  for (const Party& party : group_->parties) {
    slices.push_back({end, end + party.size() * num_bytes});
    for (const int member : party.members) {
      const std::size_t row = static_cast<std::size_t>(member) * count * SizeOf(call.dtype);
      ToPartial(input + row, call.count, call.dtype, sums_.data() + end);
      end += num_bytes;
    }
  }
  const ByteRange own = slices[group_->self];
  Locally([&](Communicator& local) {
    local.AllReduce(sums_.data(), call.count * size(), partial, call.op);
  });
  const Buffer rows = Buffer::AllocateBytes(own.size());
  if (leads_) exchange_.ReduceScatter(sums_.data(), slices, partial, call.op, rows.data());
  Locally([&](Communicator& local) { local.Broadcast(rows.data(), own.size(), 0); });
  const auto place = std::find(mates().begin(), mates().end(), rank_) - mates().begin();
  FromPartial(rows.data() + static_cast<std::size_t>(place) * num_bytes, call.count, call.dtype,
              output);
  sums_ = {};
}

void SpanningCommunicator::AllToAll(const void* input, std::span<const std::size_t> send_bytes,
                                    void* output, std::span<const std::size_t> receive_bytes) {
  const std::size_t members = group_->homes.size();
  const std::string error = SizesError(members, send_bytes, receive_bytes);
  Perform(CallOf(LocalOperation::kAllToAll, 0), error, [&] {
    const auto* const source = static_cast<const std::byte*>(input);
    auto* const target = static_cast<std::byte*>(output);
    if (local_ == nullptr) KeepPiece(*group_, rank_, source, send_bytes, target, receive_bytes);
    Locally([&](Communicator& local) {
      ExchangePieces(*group_, local, source, send_bytes, target, receive_bytes);
    });
    exchange_.AllToAll(source, send_bytes, target, receive_bytes);
  });
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> MakeSpanningGroup(
    std::shared_ptr<const SpanningGroup> group) {
  const std::vector<int>& members = group->own().members;
  std::vector<std::unique_ptr<Communicator>> locals(members.size());
  if (members.size() > 1) {
    GroupNames names = group->names;
    names.members.clear();
    for (const int member : members) names.members.push_back(group->names.MemberName(member));
    locals = MakeLocalGroup(static_cast<int>(members.size()), group->abort, std::move(names));
  }
  std::vector<std::unique_ptr<Communicator>> result(group->homes.size());
  for (std::size_t i = 0; i < members.size(); ++i)
    result[static_cast<std::size_t>(members[i])] =
        std::make_unique<SpanningCommunicator>(group, members[i], std::move(locals[i]));
  return result;
}

}  // namespace troupe
