#include "transport/local_group.hpp"

#include <stdexcept>
#include <utility>

#include "transport/collective_arguments.hpp"

namespace troupe {
namespace {

int CheckedSize(int size) {
  if (size < 1) {
    throw std::invalid_argument("local group: expected at least 1 member, got " +
                                std::to_string(size));
  }
  return size;
}

}  // namespace

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
        NameOf(place.operation.load(std::memory_order_relaxed)) + (" of " + names_.group);
    for (const int other : missing) {
      waiting.waits.push_back({.what = operation, .whom = names_.MemberName(other)});
    }
  }
}

std::byte* LocalGroup::staging(int turn, int rank) const {
  return staging_.data() + static_cast<std::size_t>(turn * size_ + rank) * kStagedBytes;
}

LocalCall& LocalGroup::Publish(int turn, int rank, const Collective& mine) {
  LocalCall& slot = calls_[static_cast<std::size_t>(turn)][static_cast<std::size_t>(rank)];
  slot.call = mine.call;
  slot.input = mine.input;
  slot.output = mine.output;
  slot.direct = true;
  slot.error = ArgumentError(mine, size_);
  slot.send_bytes.assign(mine.send_bytes.begin(), mine.send_bytes.end());
  slot.receive_bytes.assign(mine.receive_bytes.begin(), mine.receive_bytes.end());
  return slot;
}

void LocalGroup::Enter(int turn, int rank) {
  Place& place = places_[static_cast<std::size_t>(rank)];
  place.operation.store(calls(turn)[static_cast<std::size_t>(rank)].call.operation,
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
    if (departure_.empty()) departure_ = Prefix() + MemberText(rank) + " left before this call";
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
  const auto at = [&](int member) -> const LocalCall& {
    return calls[static_cast<std::size_t>(member)];
  };
  for (int member = 0; member < size_; ++member) {
    if (!at(member).error.empty())
      throw std::invalid_argument(Prefix() + MemberText(member) + ": " + at(member).error);
  }
  for (int member = 1; member < size_; ++member) {
    if (at(member).call != at(0).call)
      throw std::logic_error(Prefix() + DifferenceError(0, at(0).call, member, at(member).call));
  }
  if (at(0).call.operation == Operation::kAllToAll) CheckPieces(calls);
}

void LocalGroup::CheckPieces(const std::vector<LocalCall>& calls) const {
  for (std::size_t from = 0; from < calls.size(); ++from) {
    for (std::size_t to = 0; to < calls.size(); ++to) {
      const std::string error = PieceError(static_cast<int>(from), calls[from].send_bytes[to],
                                           static_cast<int>(to), calls[to].receive_bytes[from]);
      if (!error.empty()) throw std::invalid_argument(Prefix() + error);
    }
  }
}

}  // namespace troupe
