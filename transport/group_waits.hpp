// The current waits of group members, readable from outside. The watchdog and the search for the
// root of a stall read them when nothing moves.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/data_plane.hpp"
#include "transport/wait.hpp"

namespace troupe {

/// Thread-safe. One per process; must outlive the groups that use it.
class GroupWaits {
 public:
  using Token = std::uint64_t;

  /// Lists waiting members on request, so that a wait costs its members nothing.
  class Source {
   public:
    virtual ~Source() = default;
    /// Adds an entry for every waiting member. Thread-safe; must not call back.
    virtual void AddWaits(std::vector<ActorWaits>& all) const = 0;
  };

  /// `process_names[p]` is the name of process p ("n1"); the default is "process P".
  explicit GroupWaits(std::vector<std::string> process_names = {});

  void Add(const Source* source);
  void Remove(const Source* source);
  /// Records the beginning of a wait.
  Token Begin(ActorWaits wait);
  void End(Token token);
  /// One entry per waiting member.
  std::vector<ActorWaits> List() const;

  std::string NameOf(ProcessId process) const;

 private:
  const std::vector<std::string> process_names_;
  mutable std::mutex mutex_;
  Token last_ = 0;
  std::map<Token, ActorWaits> waits_;
  std::set<const Source*> sources_;
};

/// The names of a group and its members in reported waits.
struct GroupNames {
  GroupWaits* waits = nullptr;       ///< null: waits are not reported
  std::string group;                 ///< "tensor language.s0"
  std::vector<std::string> members;  ///< "device 3"; the default is "member I"

  std::string MemberName(int member) const;
};

/// Records one wait for the lifetime of this object.
class WaitNote {
 public:
  WaitNote(GroupWaits& waits, ActorWaits wait)
      : waits_(waits), token_(waits.Begin(std::move(wait))) {}
  WaitNote(const WaitNote&) = delete;
  WaitNote& operator=(const WaitNote&) = delete;
  ~WaitNote() { waits_.End(token_); }

 private:
  GroupWaits& waits_;
  const GroupWaits::Token token_;
};

}  // namespace troupe
