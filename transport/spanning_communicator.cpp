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
#include "transport/timed_wait.hpp"

namespace troupe {
namespace {

using Sizes = std::span<const std::size_t>;

std::size_t OffsetOf(Sizes sizes, int member) {
  return Total(sizes.first(static_cast<std::size_t>(member)));
}

void CheckPiece(const SpanningGroup& group, int from, std::size_t sent, int to,
                std::size_t expected) {
  const std::string error = PieceError(from, sent, to, expected);
  if (!error.empty()) throw std::invalid_argument(group.Prefix() + error);
}

/// `sends` and `receives` are this member's sizes for the members of its process. Throws
/// std::invalid_argument on all of these members, naming the pair, if sizes disagree.
void CheckPieces(const SpanningGroup& group, Communicator& local, Sizes sends, Sizes receives) {
  const std::vector<int>& mates = group.own().members;
  const std::size_t num_mates = mates.size();
  std::vector<std::size_t> own(sends.begin(), sends.end());
  own.insert(own.end(), receives.begin(), receives.end());
  std::vector<std::size_t> all(num_mates * own.size());  // [mate][to, from][mate]
  local.AllGather(own.data(), own.size() * sizeof(own[0]), all.data());
  for (std::size_t from = 0; from < num_mates; ++from) {
    for (std::size_t to = 0; to < num_mates; ++to) {
      CheckPiece(group, mates[from], all[from * own.size() + to], mates[to],
                 all[to * own.size() + num_mates + from]);
    }
  }
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

  void Run(const Collective& mine) override;

 private:
  /// Throws std::logic_error on all members of this process if their calls differ.
  void AgreeLocally();
  /// The operation, after the members of this process have agreed on it.
  void Perform(const Collective& mine);
  template <class Body>
  void Locally(Body body);
  /// Whether sums are taken in two steps: within processes, then between them.
  bool InParts() const { return group_->parties.size() < group_->homes.size(); }
  void Broadcast(std::byte* data);
  void AllReduce(std::byte* data);
  /// The sum over all members, on the leaders.
  void AllReduceAs(std::byte* data, DType dtype);
  void AllGather(const std::byte* input, std::byte* output);
  void ReduceScatterDirectly(const std::byte* input, std::byte* output);
  void ReduceScatterByParty(const std::byte* input, std::byte* output);
  void AllToAll(const Collective& mine);
  /// The part of an all-to-all that stays in this process, with several members.
  void ExchangePieces(Communicator& local, const Collective& mine);

  const std::vector<int>& mates() const { return group_->own().members; }
  std::string operation() const {
    return NameOf(call_.operation) + (" " + std::to_string(number_));
  }

  const std::shared_ptr<const SpanningGroup> group_;
  const int rank_;
  const bool leads_;
  const std::unique_ptr<Communicator> local_;
  SpanningExchange exchange_;
  std::uint64_t number_ = 0;  // of the operation in progress, from 1
  GroupCall call_;            // the operation in progress
  Buffer sums_;               // a member, since messages may still use it after a failure
};

void SpanningCommunicator::Run(const Collective& mine) {
  const TimedWait timed;
  ++number_;
  call_ = mine.call;
  group_->abort->ThrowIfRaised();
  try {
    const std::string error = ArgumentError(mine, size());
    if (!error.empty())
      throw std::invalid_argument(group_->Prefix() + MemberText(rank_) + ": " + error);
    AgreeLocally();
    exchange_.Begin(call_, number_);
    Perform(mine);
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

void SpanningCommunicator::AgreeLocally() {
  std::vector<GroupCall> calls(mates().size(), call_);
  Locally([&](Communicator& local) { local.AllGather(&call_, sizeof(call_), calls.data()); });
  for (std::size_t i = 1; i < calls.size(); ++i) {
    if (calls[i] != calls[0]) {
      throw std::logic_error(group_->Prefix() +
                             DifferenceError(mates()[0], calls[0], mates()[i], calls[i]));
    }
  }
}

void SpanningCommunicator::Perform(const Collective& mine) {
  switch (call_.operation) {
    case Operation::kBarrier:
      if (leads_) exchange_.Barrier();
      return Locally([](Communicator& local) { local.Barrier(); });
    case Operation::kBroadcast:
      return Broadcast(mine.output);
    case Operation::kAllReduce:
      return AllReduce(mine.output);
    case Operation::kAllGather:
      return AllGather(mine.input, mine.output);
    case Operation::kReduceScatter:
      return InParts() ? ReduceScatterByParty(mine.input, mine.output)
                       : ReduceScatterDirectly(mine.input, mine.output);
    case Operation::kAllToAll:
      return AllToAll(mine);
  }
}

void SpanningCommunicator::Broadcast(std::byte* data) {
  const int root = call_.root;
  const std::size_t num_bytes = BytesOfCount(call_);
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
    exchange_.Broadcast(data, num_bytes, static_cast<std::size_t>(party - group_->parties.begin()));
  if (leader_lacks) {
    // Keeps members of this process from returning before the other processes allow it.
    Locally([](Communicator& local) { local.Barrier(); });
  } else {
    share(0);
  }
}

void SpanningCommunicator::AllReduce(std::byte* data) {
  const DType partial = InParts() ? PartialType(call_.dtype, call_.op) : call_.dtype;
  if (partial == call_.dtype) {
    AllReduceAs(data, partial);
  } else {
    sums_ = Buffer::AllocateBytes(static_cast<std::size_t>(call_.count) * SizeOf(partial));
    ToPartial(data, call_.count, call_.dtype, sums_.data());
    AllReduceAs(sums_.data(), partial);
    if (leads_) FromPartial(sums_.data(), call_.count, call_.dtype, data);
    sums_ = {};
  }
  Locally([&](Communicator& local) { local.Broadcast(data, BytesOfCount(call_), 0); });
}

void SpanningCommunicator::AllReduceAs(std::byte* data, DType dtype) {
  Locally([&](Communicator& local) { local.AllReduce(data, call_.count, dtype, call_.op); });
  if (leads_) exchange_.AllReduce(data, call_.count, dtype, call_.op);
}

void SpanningCommunicator::AllGather(const std::byte* input, std::byte* output) {
  const std::size_t num_bytes = BytesOfCount(call_);
  const auto row = [&](int member) {
    return output + static_cast<std::size_t>(member) * num_bytes;
  };
  if (local_ == nullptr) {
    Copy(row(rank_), input, num_bytes);
  } else {
    const Buffer rows = Buffer::AllocateBytes(mates().size() * num_bytes);
    Locally([&](Communicator& local) { local.AllGather(input, num_bytes, rows.data()); });
    for (std::size_t i = 0; i < mates().size(); ++i)
      Copy(row(mates()[i]), rows.data() + i * num_bytes, num_bytes);
  }
  if (leads_) exchange_.AllGather(output, num_bytes);
  const std::size_t all_bytes = group_->homes.size() * num_bytes;
  Locally([&](Communicator& local) { local.Broadcast(output, all_bytes, 0); });
}

void SpanningCommunicator::ReduceScatterDirectly(const std::byte* input, std::byte* output) {
  const std::size_t num_bytes = BytesOfCount(call_);
  std::vector<ByteRange> slices;
  for (std::size_t i = 0; i < group_->parties.size(); ++i)
    slices.push_back({i * num_bytes, (i + 1) * num_bytes});
  exchange_.ReduceScatter(input, slices, call_.dtype, call_.op, output);
}

void SpanningCommunicator::ReduceScatterByParty(const std::byte* input, std::byte* output) {
  // Groups the rows by party, so that a party's slice is contiguous however its members are mixed.
  const DType partial = PartialType(call_.dtype, call_.op);
  const std::size_t num_bytes = static_cast<std::size_t>(call_.count) * SizeOf(partial);
  sums_ = Buffer::AllocateBytes(group_->homes.size() * num_bytes);
  std::vector<ByteRange> slices;
  std::size_t end = 0;
  for (const Party& party : group_->parties) {
    slices.push_back({end, end + party.size() * num_bytes});
    for (const int member : party.members) {
      const std::size_t row = static_cast<std::size_t>(member) * BytesOfCount(call_);
      ToPartial(input + row, call_.count, call_.dtype, sums_.data() + end);
      end += num_bytes;
    }
  }
  const ByteRange own = slices[group_->self];
  Locally([&](Communicator& local) {
    local.AllReduce(sums_.data(), call_.count * size(), partial, call_.op);
  });
  const Buffer rows = Buffer::AllocateBytes(own.size());
  if (leads_) exchange_.ReduceScatter(sums_.data(), slices, partial, call_.op, rows.data());
  Locally([&](Communicator& local) { local.Broadcast(rows.data(), own.size(), 0); });
  const auto place = std::find(mates().begin(), mates().end(), rank_) - mates().begin();
  FromPartial(rows.data() + static_cast<std::size_t>(place) * num_bytes, call_.count, call_.dtype,
              output);
  sums_ = {};
}

void SpanningCommunicator::AllToAll(const Collective& mine) {
  if (local_ == nullptr) {
    const std::size_t size = mine.send_bytes[static_cast<std::size_t>(rank_)];
    CheckPiece(*group_, rank_, size, rank_, mine.receive_bytes[static_cast<std::size_t>(rank_)]);
    Copy(mine.output + OffsetOf(mine.receive_bytes, rank_),
         mine.input + OffsetOf(mine.send_bytes, rank_), size);
  }
  Locally([&](Communicator& local) { ExchangePieces(local, mine); });
  exchange_.AllToAll(mine);
}

void SpanningCommunicator::ExchangePieces(Communicator& local, const Collective& mine) {
  std::vector<std::size_t> sends;
  std::vector<std::size_t> receives;
  for (const int mate : mates()) {
    sends.push_back(mine.send_bytes[static_cast<std::size_t>(mate)]);
    receives.push_back(mine.receive_bytes[static_cast<std::size_t>(mate)]);
  }
  CheckPieces(*group_, local, sends, receives);
  // Packed, since pieces for members in other processes are in between.
  const Buffer outgoing = Buffer::AllocateBytes(Total(sends));
  std::byte* packed = outgoing.data();
  for (std::size_t i = 0; i < mates().size(); packed += sends[i++])
    Copy(packed, mine.input + OffsetOf(mine.send_bytes, mates()[i]), sends[i]);
  const Buffer incoming = Buffer::AllocateBytes(Total(receives));
  local.AllToAll(outgoing.data(), sends, incoming.data(), receives);
  const std::byte* piece = incoming.data();
  for (std::size_t i = 0; i < mates().size(); piece += receives[i++])
    Copy(mine.output + OffsetOf(mine.receive_bytes, mates()[i]), piece, receives[i]);
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
  for (std::size_t i = 0; i < members.size(); ++i) {
    result[static_cast<std::size_t>(members[i])] =
        std::make_unique<SpanningCommunicator>(group, members[i], std::move(locals[i]));
  }
  return result;
}

}  // namespace troupe
