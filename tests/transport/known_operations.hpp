// Operations on values that every member can compute, so that it knows what it must get.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/transport/crew.hpp"
#include "transport/communicator.hpp"

namespace troupe::testing {

struct KnownOperation {
  enum Kind {
    kBarrier,
    kBroadcast,
    kAllReduce,
    kAllGather,
    kGatherInPlace,
    kReduceScatter,
    kReduceScatterInPlace,
    kAllToAll,
    kNumKinds
  };
  int kind = kBarrier;
  std::int64_t count = 0;
  std::int64_t salt = 0;  ///< other values, the same on all members
  int root = 0;
  ReduceOp op = ReduceOp::kSum;
};

template <class T>
struct Known {
  using Values = std::vector<T>;

  static Values Of(const KnownOperation& operation, int member, std::int64_t begin,
                   std::int64_t count) {
    Values values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] =
          static_cast<T>(ValueOf(member, operation.salt + begin + static_cast<std::int64_t>(i)));
    return values;
  }

  static Values Reduced(const KnownOperation& operation, int size, std::int64_t begin,
                        std::int64_t count) {
    Values result = Of(operation, 0, begin, count);
    for (int member = 1; member < size; ++member) {
      const Values values = Of(operation, member, begin, count);
      for (std::size_t i = 0; i < values.size(); ++i)
        result[i] = operation.op == ReduceOp::kSum ? static_cast<T>(result[i] + values[i])
                                                   : std::max(result[i], values[i]);
    }
    return result;
  }

  static void Append(Values& to, const Values& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  static void Expect(const Values& got, const Values& expected, const KnownOperation& operation) {
    if (got == expected) return;
    const auto differs = std::mismatch(got.begin(), got.end(), expected.begin()).first;
    throw std::runtime_error("kind " + std::to_string(operation.kind) + " of " +
                             std::to_string(operation.count) + ": element " +
                             std::to_string(differs - got.begin()) + " is wrong");
  }

  /// Throws if the member gets anything but what it should.
  static void Run(Communicator& group, DType dtype, const KnownOperation& operation) {
    const std::int64_t count = operation.count;
    const int rank = group.rank();
    const int size = group.size();
    Values data = Of(operation, rank, 0, count);
    Values expected;
    switch (operation.kind) {
      case KnownOperation::kBarrier:
        return group.Barrier();
      case KnownOperation::kBroadcast:
        group.Broadcast(data.data(), data.size() * sizeof(T), operation.root);
        return Expect(data, Of(operation, operation.root, 0, count), operation);
      case KnownOperation::kAllReduce:
        group.AllReduce(data.data(), count, dtype, operation.op);
        return Expect(data, Reduced(operation, size, 0, count), operation);
      case KnownOperation::kAllGather:
      case KnownOperation::kGatherInPlace: {
        for (int peer = 0; peer < size; ++peer) Append(expected, Of(operation, peer, 0, count));
        Values output(expected.size());
        T* input = data.data();
        if (operation.kind == KnownOperation::kGatherInPlace) {
          input = output.data() + rank * count;
          std::copy(data.begin(), data.end(), input);
        }
        group.AllGather(input, data.size() * sizeof(T), output.data());
        return Expect(output, expected, operation);
      }
      case KnownOperation::kReduceScatter: {
        const Values input = Of(operation, rank, 0, count * size);
        group.ReduceScatter(input.data(), count, dtype, operation.op, data.data());
        return Expect(data, Reduced(operation, size, count * rank, count), operation);
      }
      case KnownOperation::kReduceScatterInPlace: {
        Values input = Of(operation, rank, 0, count * size);
        T* const own = input.data() + rank * count;
        group.ReduceScatter(input.data(), count, dtype, operation.op, own);
        return Expect(Values(own, own + count), Reduced(operation, size, count * rank, count),
                      operation);
      }
      default:
        return RunAllToAll(group, operation);
    }
  }

  static void RunAllToAll(Communicator& group, const KnownOperation& operation) {
    const auto count_of = [&](int from, int to) {
      return operation.count * ((from + 2 * to) % 3) / 2;
    };
    Values input;
    Values expected;
    std::vector<std::size_t> send;
    std::vector<std::size_t> receive;
    for (int peer = 0; peer < group.size(); ++peer) {
      const std::int64_t out = count_of(group.rank(), peer);
      const std::int64_t in = count_of(peer, group.rank());
      send.push_back(static_cast<std::size_t>(out) * sizeof(T));
      receive.push_back(static_cast<std::size_t>(in) * sizeof(T));
      Append(input, Of(operation, group.rank(), 50 * peer, out));
      Append(expected, Of(operation, peer, 50 * group.rank(), in));
    }
    Values output(expected.size());
    group.AllToAll(input.data(), send, output.data(), receive);
    Expect(output, expected, operation);
  }
};

}  // namespace troupe::testing
