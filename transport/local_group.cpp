#include "transport/local_group.hpp"

#include <stdexcept>
#include <utility>

namespace troupe {
namespace {

const char* Name(LocalOperation operation) {
  switch (operation) {
    case LocalOperation::kBarrier:
      return "barrier";
    case LocalOperation::kBroadcast:
      return "broadcast";
    case LocalOperation::kAllReduce:
      return "all-reduce";
    case LocalOperation::kAllGather:
      return "all-gather";
    case LocalOperation::kReduceScatter:
      return "reduce-scatter";
    case LocalOperation::kAllToAll:
      return "all-to-all";
  }
  return "unknown operation";
}

std::string Member(std::size_t rank) { return "member " + std::to_string(rank); }

int CheckedSize(int size) {
  if (size < 1)
    throw std::invalid_argument("local group: expected at least 1 member, got " +
                                std::to_string(size));
  return size;
}

}  // namespace

bool LocalCall::Matches(const LocalCall& other) const {
  return operation == other.operation && dtype == other.dtype && op == other.op &&
         root == other.root && count == other.count;
}

std::string ToString(const LocalCall& call) {
  std::string text = Name(call.operation);
  switch (call.operation) {
    case LocalOperation::kBarrier:
    case LocalOperation::kAllToAll:
      return text;
    case LocalOperation::kBroadcast:
      return text + " of " + std::to_string(call.count) + " bytes from " +
             Member(static_cast<std::size_t>(call.root));
    case LocalOperation::kAllGather:
      return text + " of " + std::to_string(call.count) + " bytes";
    case LocalOperation::kAllReduce:
    case LocalOperation::kReduceScatter:
      break;
  }
  return text + " of " + std::to_string(call.count) + " " + ToString(call.dtype) +
         (call.op == ReduceOp::kSum ? " (sum)" : " (max)");
}

LocalGroup::LocalGroup(int size, std::shared_ptr<AbortSignal> abort, GroupNames names)
    : size_(CheckedSize(size)),
      names_(std::move(names)),
      places_(static_cast<std::size_t>(size)),
      gate_(size),
      staging_(Buffer::Allocate({2, size, std::int64_t{kStagedBytes}}, DType::kUInt8)),
      abort_(abort != nullptr ? std::move(abort) : std::make_shared<AbortSignal>()) {
  for (std::vector<LocalCall>& calls : calls_) calls.resize(static_cast<std::size_t>(size));
  subscription_ = abort_->Subscribe([this](const Failure&) { gate_.Close(); });
  if (names_.waits != nullptr) names_.waits->Add(this);
}

LocalGroup::~LocalGroup() {
  if (names_.waits != nullptr) names_.waits->Remove(this);
}

void LocalGroup::AddWaits(std::vector<ActorWaits>& all) const {
  std::vector<int> missing;
  for (int member = 0; member < size_; ++member) {
    if (!places_[static_cast<std::size_t>(member)].waits.load(std::memory_order_acquire)) {
      missing.push_back(member);
    }
  }
  if (missing.empty() || static_cast<int>(missing.size()) == size_) return;
  for (int member = 0; member < size_; ++member) {
    const Place& place = places_[static_cast<std::size_t>(member)];
    if (!place.waits.load(std::memory_order_acquire)) continue;
    ActorWaits& waiting = all.emplace_back();
    waiting.who = names_.MemberName(member);
    const std::string operation =
        Name(place.operation.load(std::memory_order_relaxed)) + (" of " + names_.group);
    for (const int other : missing) {
      waiting.waits.push_back({operation, "", 0, names_.MemberName(other)});
    }
  }
}

std::byte* LocalGroup::staging(int turn, int rank) const {
  return staging_.data() + static_cast<std::size_t>(turn * size_ + rank) * kStagedBytes;
}

void LocalGroup::Enter(int turn, int rank) {
  Place& place = places_[static_cast<std::size_t>(rank)];
  place.operation.store(calls(turn)[static_cast<std::size_t>(rank)].operation,
                        std::memory_order_relaxed);
  place.waits.store(true, std::memory_order_release);
  const bool met = gate_.Enter();
  place.waits.store(false, std::memory_order_release);
  if (!met) ThrowClosed();
  CheckCalls(calls(turn));
}

void LocalGroup::Depart(int rank) {
  {
    const std::lock_guard lock(mutex_);
    if (departure_.empty())
      departure_ = Prefix() + Member(static_cast<std::size_t>(rank)) + " left before this call";
  }
  gate_.Close();
}

void LocalGroup::ThrowClosed() {
  // Members ended by an abort leave as well: their departure is never the cause.
  abort_->ThrowIfRaised();
  const std::lock_guard lock(mutex_);
  throw Aborted(departure_);
}

void LocalGroup::CheckCalls(const std::vector<LocalCall>& calls) const {
  for (std::size_t rank = 0; rank < calls.size(); ++rank)
    if (!calls[rank].error.empty())
      throw std::invalid_argument(Prefix() + Member(rank) + ": " + calls[rank].error);
  for (std::size_t rank = 1; rank < calls.size(); ++rank)
    if (!calls[rank].Matches(calls[0]))
      throw std::logic_error(Prefix() + "member 0 called " + ToString(calls[0]) + ", " +
                             Member(rank) + " called " + ToString(calls[rank]));
  if (calls[0].operation == LocalOperation::kAllToAll) CheckPieces(calls);
}

void LocalGroup::CheckPieces(const std::vector<LocalCall>& calls) const {
  for (std::size_t from = 0; from < calls.size(); ++from)
    for (std::size_t to = 0; to < calls.size(); ++to)
      if (calls[from].send_bytes[to] != calls[to].receive_bytes[from])
        throw std::invalid_argument(Prefix() + "all-to-all: " + Member(from) + " sends " +
                                    std::to_string(calls[from].send_bytes[to]) + " bytes to " +
                                    Member(to) + ", which expects " +
                                    std::to_string(calls[to].receive_bytes[from]));
}

}  // namespace troupe
