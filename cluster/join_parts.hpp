// What the two sides of Join share: cluster/join_first.cpp (process 0) and cluster/join_member.cpp.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "cluster/join.hpp"
#include "cluster/tls.hpp"

namespace troupe {

/// Process 0's side, and everybody else's. Throw JoinError, and what the layers below throw.
Joined JoinAsFirst(const RunKey& key, const JoinOptions& options);
Joined JoinAsMember(const RunKey& key, const JoinOptions& options);

/// How a process is called that has not said its name.
std::string NameOf(const JoinOptions& options, ProcessId process);
/// For the connections of this Join; refers to `options`.
TlsUse TlsOf(const JoinOptions& options);

/// How long the connections between all may take once everybody is here.
std::chrono::milliseconds MeshTime(const JoinOptions& options);
/// What process 0 gives the members beyond a deadline of theirs to tell it what went wrong.
inline constexpr std::chrono::milliseconds kReportTime{2000};

/// Says what is waited for after 2 s, then every 5 s.
class Progress {
 public:
  explicit Progress(const JoinOptions& options);
  void Tell(Deadline now, const std::function<std::string()>& line);

 private:
  const JoinOptions& options_;
  const Deadline began_;
  Deadline next_;
};

}  // namespace troupe
