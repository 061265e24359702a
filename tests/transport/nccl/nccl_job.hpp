// A job whose ranks have a device each, and the emulated NCCL between them.
#pragma once

#include <chrono>

#include "tests/gpu/emulated/nccl/nccl.hpp"
#include "tests/transport/gpu/known_on_device.hpp"
#include "transport/nccl/nccl.hpp"

namespace troupe::testing {

/// A machine with a device per rank, NCCL between them, and the job's watch over it.
struct NcclJob {
  explicit NcclJob(int size, std::chrono::microseconds delay = {},
                   emulated::NcclSettings settings = {})
      : machine({.num_devices = size, .max_delay = delay}), network(settings) {
    for (int i = 0; i < size; ++i) crew.devices.push_back(size - 1 - i);
    crew.library = &nccl;
  }

  emulated::Machine machine;
  emulated::NcclNetwork network;
  DeviceCrew crew;
  Nccl nccl{crew.abort};
};

}  // namespace troupe::testing
