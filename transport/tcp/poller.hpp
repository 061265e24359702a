// Which connections of a plane can be read or written, as what its pump drives.
#pragma once

#include <cstdint>
#include <functional>

#include "transport/descriptor.hpp"
#include "transport/pump.hpp"

namespace troupe {

/// One thread, but for Signal.
class Poller final : public PumpWorker {
 public:
  struct Hooks {
    /// Sends what can be sent, before every look. Whether anything was.
    std::function<bool()> flush;
    /// `tag` can be read, or written.
    std::function<void(int tag, bool readable, bool writable)> ready;
  };

  /// Throws std::runtime_error when the system has no descriptor left.
  Poller();
  void Start(Hooks hooks) { hooks_ = std::move(hooks); }

  /// From now on looks whether `descriptor` can be read, and with `writes` whether it can be
  /// written. Throws std::runtime_error.
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
