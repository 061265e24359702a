// A feed machine: prepares samples for all processes of a job.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "cluster/tls.hpp"
#include "feed/message.hpp"
#include "modules/input_source.hpp"

namespace troupe {

struct FeedMachineOptions {
  RunKey key;            ///< RunKey::Feed
  Address first;         ///< where process 0 takes samples
  FeedHello hello = {};  ///< without credits
  int threads = 1;
  /// For how long it waits for the job, at first and when it has lost it. Unset: for ever.
  std::optional<std::chrono::seconds> patience = {};
  TlsUse tls = {};
  std::function<void(const std::string&)> print =
      {};  ///< what it waits for, and how much it has done
};

/// Prepares samples until the job ends. Returns how that was: kDone, kEnded, kAbsent if it has not come in
/// time, or why this machine does not fit. A sample may still be prepared then, on a thread that uses both
/// arguments.
JoinProblem RunFeedMachine(const FeedMachineOptions& options, const InputSource& source);

}  // namespace troupe
