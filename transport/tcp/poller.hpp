// Polls a plane's connections for reading and writing; driven by the plane's pump.
#pragma once

#include <cstdint>
#include <functional>

#include "transport/descriptor.hpp"
#include "transport/pump.hpp"

namespace troupe {

/// Not thread-safe, except Signal.
class Poller final : public PumpWorker {
 public:
  struct Hooks {
    /// Sends as much as possible; called before every poll. Returns whether anything was sent.
    std::function<bool()> flush;
    /// The descriptor with this `tag` is readable or writable.
    std::function<void(int tag, bool readable, bool writable)> ready;
  };

  /// Throws std::runtime_error if the process is out of descriptors.
  Poller();
  void Start(Hooks hooks) { hooks_ = std::move(hooks); }

  /// Polls `descriptor` for reading, and with `writes` also for writing. Throws std::runtime_error.
  void Add(int descriptor, int tag);
  void Watch(int descriptor, int tag, bool writes);
  void Remove(int descriptor);

  bool Progress() override;
  int EventDescriptor() const override { return set_.get(); }
  bool Arm() override { return true; }
  void Signal() override;

 private:
  void Control(int operation, int descriptor, int tag, bool writes);

  Descriptor set_;
  Descriptor wake_up_;
  Hooks hooks_;
};

}  // namespace troupe
