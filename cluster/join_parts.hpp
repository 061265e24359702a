// Shared by the two sides of Join: cluster/join_first.cpp (process 0) and cluster/join_member.cpp.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "cluster/join.hpp"
#include "cluster/places.hpp"
#include "cluster/tls.hpp"

namespace troupe {

/// The longest wait of one round of a meeting's loop.
inline constexpr std::chrono::milliseconds kJoinRound{250};

/// Time between two connections to process 0.
inline constexpr std::chrono::milliseconds kComeBackAfter{300};

/// The two sides. All functions of `options` are set. Throw JoinError and the errors of the layers
/// below.
Joined JoinAsFirst(const RunKey& key, const JoinOptions& options);
Joined JoinAsMember(const RunKey& key, const JoinOptions& options);

/// Like Socket::Listen, but throws JoinError.
Socket ListenOn(const Address& address);

/// The name of a process, also before it has joined.
std::string NameOf(const JoinOptions& options, ProcessId process);
/// For the connections of this Join. Outlives `options`, but not its TlsContext.
TlsUse TlsOf(const JoinOptions& options);
/// The number of unauthenticated connections a listener of this Join can hold. Prints a warning if
/// that is less than kPromisedPlaces.
PlaceLimits PlacesOf(const JoinOptions& options);

/// The time limit of the connections between all processes after all have joined.
std::chrono::milliseconds MeshTime(const JoinOptions& options);
/// Bytes sent to a process that has proven the run key must arrive within this time. Otherwise the
/// path is at fault.
inline constexpr std::chrono::milliseconds kStuckTime{5000};
/// Why only handshakes get through, as the end of a sentence.
inline constexpr const char* kPathAdvice =
    "though the run key was proven: does the path drop large packets (MTU)?";
/// Time beyond a member's deadline for it to report its failure to process 0.
inline constexpr std::chrono::milliseconds kReportTime{2000};

/// Makes a problem with another process kLeft in a job that goes on after a loss: that process may be
/// lost, so the job meets again.
JoinProblem PerhapsLost(JoinProblem problem, const JoinOptions& options);

/// Prints progress after 2 s, then every 5 s.
class Progress {
 public:
  explicit Progress(const JoinOptions& options);
  void Report(Deadline now, const std::function<std::string()>& line);

 private:
  const JoinOptions& options_;
  const Deadline began_;
  Deadline next_;
};

}  // namespace troupe
