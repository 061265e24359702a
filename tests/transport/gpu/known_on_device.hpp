// The known operations of tests/transport, on devices.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/transport/gpu/device_crew.hpp"
#include "tests/transport/known_operations.hpp"

namespace troupe::testing {

/// Operations drawn from a seed, the same on all members: sizes around those that are special.
inline std::vector<KnownOperation> DrawOperations(int size, unsigned seed, int count) {
  std::mt19937 random(seed);
  const std::vector<std::int64_t> counts = {0, 1, 3, 63, 64, 65, 1000, 2049, 5000};
  std::vector<KnownOperation> all;
  for (int i = 0; i < count; ++i) {
    KnownOperation operation;
    operation.kind = static_cast<int>(random() % KnownOperation::kNumKinds);
    operation.count = counts[random() % counts.size()];
    operation.salt = static_cast<std::int64_t>(random() % 1000);
    operation.root = static_cast<int>(random() % static_cast<unsigned>(size));
    operation.op = random() % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMax;
    all.push_back(operation);
  }
  return all;
}

/// Runs them on memory of the device, and every third on memory of the host.
inline void RunKnown(DeviceRank& member, unsigned seed, int count) {
  ThroughDevice on_device(member.group, member.stream, member.pool);
  int turn = 0;
  for (const KnownOperation& operation : DrawOperations(member.group.size(), seed, count)) {
    Communicator& group = ++turn % 3 == 0 ? member.group : on_device;
    switch (turn % 4) {
      case 0:
        Known<float>::Run(group, DType::kFloat32, operation);
        break;
      case 1:
        Known<std::int64_t>::Run(group, DType::kInt64, operation);
        break;
      case 2:
        Known<double>::Run(group, DType::kFloat64, operation);
        break;
      default:
        Known<std::int32_t>::Run(group, DType::kInt32, operation);
    }
  }
}

}  // namespace troupe::testing
