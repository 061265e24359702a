// What the two sides of Join share: cluster/join_first.cpp (process 0) and cluster/join_member.cpp.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "cluster/join.hpp"
#include "cluster/places.hpp"
#include "cluster/tls.hpp"

namespace troupe {

/// Process 0's side, and everybody else's. Throw JoinError, and what the layers below throw.
/// How often a process that waits for others looks around.
inline constexpr std::chrono::milliseconds kJoinRound{250};

Joined JoinAsFirst(const RunKey& key, const JoinOptions& options);
Joined JoinAsMember(const RunKey& key, const JoinOptions& options);

/// Socket::Listen; throws JoinError.
Socket ListenOn(const Address& address);

/// How a process is called that has not said its name.
std::string NameOf(const JoinOptions& options, ProcessId process);
/// For the connections of this Join; outlives `options`, but not its TlsContext.
TlsUse TlsOf(const JoinOptions& options);
/// How many strangers a listener of this Join can hold. Says so where that is less than promised.
PlaceLimits PlacesOf(const JoinOptions& options);

/// How long the connections between all may take once everybody is here.
std::chrono::milliseconds MeshTime(const JoinOptions& options);
/// What is sent to a process that has proven the run key arrives within this time, or the path
/// between the two is at fault.
inline constexpr std::chrono::milliseconds kStuckTime{5000};
/// Why nothing larger than a handshake arrives, as the end of a sentence.
inline constexpr const char* kPathAdvice =
    "though the run key was proven: does the path drop large packets (MTU)?";
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
