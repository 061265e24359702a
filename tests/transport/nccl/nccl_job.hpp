// A job whose ranks have a device each, and the emulated NCCL between them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

/// A rank that is in two groups on one stream of its device.
struct RankOfTwoGroups {
  int rank;
  const gpu::Stream& stream;
  gpu::MemoryPool& pool;
  Communicator& first;
  Communicator& second;
};

/// What `body` comes to on each of two ranks, which leave their groups after it.
inline std::vector<std::string> InTwoGroups(
    Nccl& nccl, const std::shared_ptr<AbortSignal>& abort,
    const std::function<void(const RankOfTwoGroups&)>& body) {
  auto tensor = MakeLocalGroup(2, abort);
  auto data = MakeLocalGroup(2, abort);
  std::vector<std::string> outcomes(2);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    threads.emplace_back([&, i] {
      outcomes[i] = OutcomeOf([&] {
        const auto rank = static_cast<int>(i);
        const gpu::Stream stream(rank);
        gpu::MemoryPool pool(rank);
        const auto join = [&](auto& hosts, const char* name) {
          DeviceMember member{std::move(hosts[i]), &stream, 0,
                              {nullptr, name, {}}, abort,   std::chrono::seconds(10)};
          return MakeDeviceGroup(std::move(member), &nccl).communicator;
        };
        const auto first = join(tensor, "tensor");
        const auto second = join(data, "data");
        body({rank, stream, pool, *first, *second});
      });
    });
  }
  threads.clear();
  return outcomes;
}

}  // namespace troupe::testing
