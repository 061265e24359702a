// Machines that prepare samples for a process of a job. They come and go while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "modules/input_source.hpp"

namespace troupe {

/// A sample that a machine has prepared.
struct MachineSample {
  Buffer sample;                       ///< as of InputSource::Prepare
  std::vector<std::int64_t> phase_ns;  ///< by DataPhase, without kTransfer
  std::int64_t queued_ns = 0;          ///< for which the machine had no thread free
};

/// A connected machine. Thread-safe. What it is given to call is called on another thread, which must not
/// wait, and not after FeedMachines::Forget: from then on it does nothing.
class FeedMachine {
 public:
  virtual ~FeedMachine() = default;
  virtual const std::string& name() const = 0;
  /// The most samples that it may be asked for at a time.
  virtual int credits() const = 0;
  /// Calls `gone` once, when the machine will prepare nothing more.
  virtual void Watch(std::function<void()> gone) = 0;
  /// Asks for a sample, of which `prepared` is called. Machines prepare the earliest microbatches first.
  virtual void Ask(std::int64_t microbatch, const SampleTicket& ticket,
                   std::function<void(const MachineSample&)> prepared) = 0;
  /// Reports that it is late, so it gets no samples until it answers; or that it has answered.
  virtual void SetLate(bool is_late) = 0;
  /// Ends its connection and tells it why.
  virtual void Dismiss(const std::string& why) = 0;
};

/// Thread-safe.
class FeedMachines {
 public:
  virtual ~FeedMachines() = default;
  /// Calls `came` for each machine that is there, and for those that come later, on another thread.
  virtual void Listen(std::function<void(std::shared_ptr<FeedMachine>)> came) = 0;
  /// Ends Listen. The machines that are there drop what they were asked for and come again at the next
  /// Listen.
  virtual void Forget() = 0;
};

}  // namespace troupe
