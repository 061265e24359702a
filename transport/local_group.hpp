// The shared state of a local group: a gate and the calls that members publish there.
//
// An operation: every member publishes its call in its slot and enters the gate. Then all read all
// slots and reach the same verdict, so an operation completes on every member or throws on every
// member. Small inputs are copied into the slot before, and the operation ends here. Larger inputs
// are read in place (and written, by an all-reduce), and a second barrier holds every member until
// none needs another's memory.
//
// There are two sets of slots, used alternately. A member that publishes in a set again has passed
// the gate once more since, so all others have finished with its earlier call in that set.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/abort_signal.hpp"
#include "transport/buffer.hpp"
#include "transport/communicator.hpp"
#include "transport/group_waits.hpp"
#include "transport/local_gate.hpp"

namespace troupe {

/// One member's call, readable by the others.
struct alignas(64) LocalCall {
  GroupCall call;
  const std::byte* input = nullptr;     ///< for peers to read: staged, or the member's own memory
  std::byte* output = nullptr;          ///< for peers to write, in an all-reduce
  bool direct = false;                  ///< peers use the member's own memory
  std::string error;                    ///< why this member's arguments are illegal, or empty
  std::vector<std::size_t> send_bytes;  ///< of an all-to-all, one per member
  std::vector<std::size_t> receive_bytes;  ///< likewise
};

class LocalGroup final : private GroupWaits::Source {
 public:
  /// Throws std::invalid_argument for a size below 1. `abort` may be null.
  LocalGroup(int size, std::shared_ptr<AbortSignal> abort, GroupNames names = {});
  ~LocalGroup() override;

  int size() const { return size_; }
  /// The slots of all members in one of the two sets.
  const std::vector<LocalCall>& calls(int turn) const {
    return calls_[static_cast<std::size_t>(turn)];
  }
  /// Fills the slot of member `rank` in set `turn`: checks the arguments, and lets peers read and
  /// write the memory of the call itself.
  LocalCall& Publish(int turn, int rank, const Collective& mine);
  /// The kStagedBytes of staging memory of member `rank` for its call in set `turn`.
  std::byte* staging(int turn, int rank) const;

  /// Member `rank` waits until every member has published in set `turn`. Throws Aborted;
  /// std::invalid_argument and std::logic_error, the same on all members, if a call is illegal or
  /// calls do not match.
  void Enter(int turn, int rank);
  /// Waits until every member is done with the memory of the others.
  void Leave() { gate_.Meet(); }
  /// Member `rank` makes no more calls.
  void Depart(int rank);

  /// Larger inputs are read in place instead of being copied into the slot.
  static constexpr std::size_t kStagedBytes = 8192;

 private:
  /// The current wait of a member, readable by other threads.
  struct alignas(64) Place {
    std::atomic<bool> waits = false;
    std::atomic<Operation> operation = Operation::kBarrier;
  };

  void AddWaits(std::vector<ActorWaits>& all) const override;
  [[noreturn]] void ThrowClosed();
  void CheckCalls(const std::vector<LocalCall>& calls) const;
  void CheckPieces(const std::vector<LocalCall>& calls) const;
  std::string Prefix() const { return "local group of " + std::to_string(size_) + ": "; }

  const int size_;
  const GroupNames names_;
  std::vector<Place> places_;
  LocalGate gate_;
  std::array<std::vector<LocalCall>, 2> calls_;
  Buffer staging_;  // [2, size, kStagedBytes]
  std::shared_ptr<AbortSignal> abort_;
  std::mutex mutex_;
  std::string departure_;               // the first member that left; guarded by mutex_
  std::shared_ptr<void> subscription_;  // last: its callback uses the gate
};

}  // namespace troupe
