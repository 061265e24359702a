#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <catch2/catch.hpp>

#include "tests/transport/crew.hpp"
#include "transport/communicator.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

// Around the size up to which inputs are staged, and the 1 MiB of a typical activation.
constexpr std::array<std::int64_t, 9> kCounts = {0, 1, 3, 17, 1023, 2048, 2049, 12345, 262144};

template <class T>
std::vector<T> InputOf(int member, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(ValueOf(member, static_cast<std::int64_t>(i)));
  return values;
}

template <class T>
std::vector<T> Reduced(int size, std::int64_t count, ReduceOp op) {
  std::vector<T> result = InputOf<T>(0, count);
  for (int member = 1; member < size; ++member) {
    const std::vector<T> values = InputOf<T>(member, count);
    for (std::size_t i = 0; i < values.size(); ++i)
      result[i] = op == ReduceOp::kSum ? static_cast<T>(result[i] + values[i])
                                       : std::max(result[i], values[i]);
  }
  return result;
}

/// Throws in a member's thread, where assertions of the test framework must not be used.
void Expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

template <class T>
void CheckAllReduce(DType dtype, ReduceOp op, const std::vector<std::int64_t>& counts) {
  for (int size = 1; size <= 8; ++size)
    for (const std::int64_t count : counts) {
      const std::vector<T> expected = Reduced<T>(size, count, op);
      const auto outcomes = RunGroup(size, [&](Communicator& group) {
        std::vector<T> data = InputOf<T>(group.rank(), count);
        group.AllReduce(data.data(), count, dtype, op);
        Expect(data == expected, "wrong sum");
        group.AllReduce(data.data(), count, dtype, ReduceOp::kMax);
        Expect(data == expected, "the maximum of equal values is another");
      });
      INFO("size " << size << ", count " << count << ", " << ToString(dtype));
      REQUIRE(outcomes == All(size, "ok"));
    }
}

}  // namespace

TEST_CASE("an all-reduce gives every member what a plain loop gives") {
  CheckAllReduce<float>(DType::kFloat32, ReduceOp::kSum, {kCounts.begin(), kCounts.end()});
  CheckAllReduce<float>(DType::kFloat32, ReduceOp::kMax, {0, 5, 9001});
  CheckAllReduce<double>(DType::kFloat64, ReduceOp::kSum, {1, 1025, 40001});
  CheckAllReduce<double>(DType::kFloat64, ReduceOp::kMax, {40001});
  CheckAllReduce<std::int64_t>(DType::kInt64, ReduceOp::kSum, {7, 5003});
  CheckAllReduce<std::int64_t>(DType::kInt64, ReduceOp::kMax, {5003});
  CheckAllReduce<std::int32_t>(DType::kInt32, ReduceOp::kSum, {7, 5003});
  CheckAllReduce<std::uint8_t>(DType::kUInt8, ReduceOp::kSum, {7, 8191, 8193, 20001});
  CheckAllReduce<std::uint8_t>(DType::kUInt8, ReduceOp::kMax, {20001});
}

TEST_CASE("sums of floats are taken in rank order, with the same bits on all members and runs") {
  // 2^24 + 1 rounds down, so the order of these shows in the result.
  const std::array<float, 4> addends = {16777216.0F, 1.0F, 1.0F, -16777216.0F};
  const float in_order = ((addends[0] + addends[1]) + addends[2]) + addends[3];
  for (const std::int64_t count : {5, 100003}) {
    for (int run = 0; run < 10; ++run) {
      const auto outcomes = RunGroup(4, [&](Communicator& group) {
        std::vector<float> data(static_cast<std::size_t>(count),
                                addends[static_cast<std::size_t>(group.rank())]);
        group.AllReduce(data.data(), count, DType::kFloat32, ReduceOp::kSum);
        for (const float value : data) Expect(value == in_order, "summed in another order");
      });
      REQUIRE(outcomes == All(4, "ok"));
    }
  }
}

TEST_CASE("a NaN of any member survives the maximum") {
  for (int bad = 0; bad < 3; ++bad)
    for (const std::int64_t count : {4, 10000}) {
      const auto outcomes = RunGroup(3, [&](Communicator& group) {
        std::vector<float> data(static_cast<std::size_t>(count), static_cast<float>(group.rank()));
        if (group.rank() == bad) data[1] = std::numeric_limits<float>::quiet_NaN();
        group.AllReduce(data.data(), count, DType::kFloat32, ReduceOp::kMax);
        Expect(data[0] == 2.0F && std::isnan(data[1]) && data[2] == 2.0F, "the NaN is lost");
      });
      REQUIRE(outcomes == All(3, "ok"));
    }
}

TEST_CASE("a reduce-scatter gives each member its range of the sum") {
  for (int size = 1; size <= 8; ++size)
    for (const std::int64_t count : kCounts) {
      const std::vector<float> sum = Reduced<float>(size, count * size, ReduceOp::kSum);
      const auto outcomes = RunGroup(size, [&](Communicator& group) {
        const std::vector<float> input = InputOf<float>(group.rank(), count * size);
        std::vector<float> output(static_cast<std::size_t>(count));
        group.ReduceScatter(input.data(), count, DType::kFloat32, ReduceOp::kSum, output.data());
        Expect(std::equal(output.begin(), output.end(), sum.begin() + count * group.rank()),
               "wrong sum");
        Expect(input == InputOf<float>(group.rank(), count * size), "the input has changed");
      });
      INFO("size " << size << ", count " << count);
      REQUIRE(outcomes == All(size, "ok"));
    }
}

TEST_CASE("an all-gather lays the bytes of all members in rank order") {
  for (int size = 1; size <= 8; ++size)
    for (const std::int64_t count : kCounts) {
      std::vector<float> expected;
      for (int member = 0; member < size; ++member)
        for (const float value : InputOf<float>(member, count)) expected.push_back(value);
      const auto outcomes = RunGroup(size, [&](Communicator& group) {
        const std::vector<float> input = InputOf<float>(group.rank(), count);
        std::vector<float> output(expected.size());
        group.AllGather(input.data(), input.size() * 4, output.data());
        Expect(output == expected, "wrong order");
        std::vector<float> in_place(expected.size());
        float* const own = in_place.data() + count * group.rank();
        std::copy(input.begin(), input.end(), own);
        group.AllGather(own, input.size() * 4, in_place.data());
        Expect(in_place == expected, "wrong order in place");
      });
      INFO("size " << size << ", count " << count);
      REQUIRE(outcomes == All(size, "ok"));
    }
}

TEST_CASE("a broadcast from any root reaches all members") {
  for (int size = 1; size <= 8; ++size)
    for (const std::int64_t count : kCounts) {
      const auto outcomes = RunGroup(size, [&](Communicator& group) {
        for (int root = 0; root < size; ++root) {
          std::vector<float> data = InputOf<float>(group.rank(), count);
          group.Broadcast(data.data(), data.size() * 4, root);
          Expect(data == InputOf<float>(root, count), "not the root's data");
        }
      });
      INFO("size " << size << ", count " << count);
      REQUIRE(outcomes == All(size, "ok"));
    }
}

TEST_CASE("an all-to-all moves pieces of any size, none included") {
  for (int size = 1; size <= 8; ++size)
    for (const std::size_t unit : {0, 1, 37, 5000}) {
      const auto bytes_from = [&](int from, int to) {
        return unit * static_cast<std::size_t>((from * 3 + to * 5) % 4);
      };
      const auto byte_of = [](int from, int to, std::size_t i) {
        return static_cast<std::uint8_t>(static_cast<std::size_t>(from * 16 + to * 131) + i);
      };
      const auto outcomes = RunGroup(size, [&](Communicator& group) {
        const int me = group.rank();
        std::vector<std::size_t> send;
        std::vector<std::size_t> receive;
        std::vector<std::uint8_t> input;
        std::vector<std::uint8_t> expected;
        for (int peer = 0; peer < size; ++peer) {
          send.push_back(bytes_from(me, peer));
          receive.push_back(bytes_from(peer, me));
          for (std::size_t i = 0; i < send.back(); ++i) input.push_back(byte_of(me, peer, i));
          for (std::size_t i = 0; i < receive.back(); ++i) expected.push_back(byte_of(peer, me, i));
        }
        std::vector<std::uint8_t> output(expected.size());
        group.AllToAll(input.data(), send, output.data(), receive);
        Expect(output == expected, "wrong bytes");
      });
      INFO("size " << size << ", unit " << unit);
      REQUIRE(outcomes == All(size, "ok"));
    }
}

TEST_CASE("no member passes a barrier before all have come") {
  for (int size = 1; size <= 8; ++size) {
    std::atomic<int> arrived = 0;
    const auto outcomes = RunGroup(size, [&](Communicator& group) {
      for (int round = 1; round <= 50; ++round) {
        ++arrived;
        group.Barrier();
        Expect(arrived >= round * size, "passed too early");
        group.Barrier();
      }
    });
    REQUIRE(outcomes == All(size, "ok"));
  }
}

TEST_CASE("a group has at least one member") {
  CHECK_THROWS_WITH(MakeLocalGroup(0, nullptr), "local group: expected at least 1 member, got 0");
  const auto alone = MakeLocalGroup(1, nullptr);
  CHECK(alone[0]->size() == 1);
  CHECK(alone[0]->rank() == 0);
}
