// A group whose members live in several processes: the homes of the members and the state shared by
// the members of this process. Immutable.
//
// The members of one process are a party. They meet in a local group. The lowest of them, the
// leader, represents them among the leaders. Parties are ordered by their leaders.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "transport/abort_signal.hpp"
#include "transport/communicator.hpp"
#include "transport/data_plane.hpp"
#include "transport/group_waits.hpp"

namespace troupe {

/// Members [first, first + count) of a group.
struct MemberRun {
  int first = 0;
  int count = 0;
};

struct Party {
  ProcessId process = 0;
  std::vector<int> members;     ///< ascending
  std::vector<MemberRun> runs;  ///< the same, as few runs as possible, ascending

  int leader() const { return members.front(); }
  std::size_t size() const { return members.size(); }
};

/// The parties of a group, ordered by leader. homes[i] is the process of member i.
std::vector<Party> PartiesOf(const std::vector<ProcessId>& homes);

struct SpanningGroup {
  std::string name;
  std::vector<ProcessId> homes;
  std::vector<Party> parties;
  std::size_t self = 0;      ///< index of this process's party
  std::uint64_t stream = 0;  ///< of the exchanged calls; streams of data derive from it
  DataPlane* plane = nullptr;
  std::shared_ptr<AbortSignal> abort;
  GroupNames names;

  int size() const { return static_cast<int>(homes.size()); }
  const Party& own() const { return parties[self]; }
  ProcessId home(int member) const { return homes[static_cast<std::size_t>(member)]; }
  std::string Prefix() const { return "group " + name + ": "; }
  /// "member 1 (n1)", or without names "member 1 (process 1)".
  std::string Describe(int member) const;
};

/// The views of this process's members, at least one; null for other members.
std::vector<std::unique_ptr<Communicator>> MakeSpanningGroup(
    std::shared_ptr<const SpanningGroup> group);

}  // namespace troupe
