// What the members of groups wait for right now, readable from outside: a watchdog prints it when
// nothing moves.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transport/data_plane.hpp"

namespace troupe {

/// Thread-safe. One per process; must outlive the groups that write into it.
class GroupWaits {
 public:
  using Token = std::uint64_t;

  /// `process_names[p]` is what process p is called ("n1"); those without one are "process P".
  explicit GroupWaits(std::vector<std::string> process_names = {});

  /// A wait begins: "all-reduce 52 of tensor language.s0: member 0 waits for member 1 (n1)".
  Token Begin(std::string text);
  void End(Token token);
  /// The texts of all waits in progress, the oldest first.
  std::vector<std::string> List() const;

  std::string NameOf(ProcessId process) const;

 private:
  const std::vector<std::string> process_names_;
  mutable std::mutex mutex_;
  Token last_ = 0;
  std::map<Token, std::string> waits_;
};

/// One wait, for as long as this object lives.
class WaitNote {
 public:
  /// Nothing happens if `waits` is null.
  WaitNote(GroupWaits* waits, std::string text)
      : waits_(waits), token_(waits != nullptr ? waits->Begin(std::move(text)) : 0) {}
  WaitNote(const WaitNote&) = delete;
  WaitNote& operator=(const WaitNote&) = delete;
  ~WaitNote() {
    if (waits_ != nullptr) waits_->End(token_);
  }

 private:
  GroupWaits* const waits_;
  const GroupWaits::Token token_;
};

}  // namespace troupe
