// What the members of groups wait for right now, readable from outside: a watchdog and the search
// for whom a job hangs on look at it when nothing moves.
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

/// Thread-safe. One per process; must outlive the groups that write into it.
class GroupWaits {
 public:
  using Token = std::uint64_t;

  /// Something that knows by itself who waits in it, so that a wait costs its members nothing.
  class Source {
   public:
    virtual ~Source() = default;
    /// Adds a line for every member that waits. Thread-safe; must not call back.
    virtual void AddWaits(std::vector<ActorWaits>& all) const = 0;
  };

  /// `process_names[p]` is what process p is called ("n1"); those without one are "process P".
  explicit GroupWaits(std::vector<std::string> process_names = {});

  void Add(const Source* source);
  void Remove(const Source* source);
  /// A wait begins.
  Token Begin(ActorWaits wait);
  void End(Token token);
  /// One entry per member that waits.
  std::vector<ActorWaits> List() const;

  std::string NameOf(ProcessId process) const;

 private:
  const std::vector<std::string> process_names_;
  mutable std::mutex mutex_;
  Token last_ = 0;
  std::map<Token, ActorWaits> waits_;
  std::set<const Source*> sources_;
};

/// What a group is called where its waits are told.
struct GroupNames {
  GroupWaits* waits = nullptr;       ///< null: they are not told
  std::string group;                 ///< "tensor language.s0"
  std::vector<std::string> members;  ///< "device 3"; those without a name are "member I"

  std::string MemberName(int member) const;
};

/// One wait, for as long as this object lives.
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
