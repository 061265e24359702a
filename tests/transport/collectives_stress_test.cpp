#include <random>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/transport/crew.hpp"
#include "transport/communicator.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// One operation of a random sequence, the same on all members.
struct Draw {
  explicit Draw(std::mt19937& random, int size) : kind(static_cast<int>(random() % 6)) {
    // Mostly small, where members race through the double-buffered slots.
    const std::uint32_t scale = random() % 16;
    count = static_cast<std::int64_t>(random() % (scale == 0 ? 30000 : scale < 4 ? 3000 : 20));
    salt = static_cast<std::int64_t>(random() % 1000);
    root = static_cast<int>(random() % static_cast<std::uint32_t>(size));
  }
  int kind;
  int root;
  std::int64_t count;
  std::int64_t salt;
};

using Values = std::vector<std::int64_t>;

Values Fill(const Draw& draw, int member, std::int64_t begin, std::int64_t count) {
  Values values;
  for (std::int64_t i = begin; i < begin + count; ++i)
    values.push_back(ValueOf(member, i + draw.salt));
  return values;
}

Values SumOf(const Draw& draw, int size, std::int64_t begin, std::int64_t count) {
  Values sum(static_cast<std::size_t>(count));
  for (int member = 0; member < size; ++member) {
    const Values values = Fill(draw, member, begin, count);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  return sum;
}

void Append(Values& to, const Values& from) { to.insert(to.end(), from.begin(), from.end()); }

/// {what the member got, what it should have got}.
std::pair<Values, Values> RunAllToAll(const Draw& draw, Communicator& group) {
  const auto count_of = [&](int from, int to) { return draw.count * ((from + 2 * to) % 3) / 2; };
  Values input;
  Values expected;
  std::vector<std::size_t> send;
  std::vector<std::size_t> receive;
  for (int peer = 0; peer < group.size(); ++peer) {
    const std::int64_t out = count_of(group.rank(), peer);
    const std::int64_t in = count_of(peer, group.rank());
    send.push_back(static_cast<std::size_t>(out) * 8);
    receive.push_back(static_cast<std::size_t>(in) * 8);
    Append(input, Fill(draw, group.rank(), 50 * peer, out));
    Append(expected, Fill(draw, peer, 50 * group.rank(), in));
  }
  Values output(expected.size());
  group.AllToAll(input.data(), send, output.data(), receive);
  return {output, expected};
}

std::pair<Values, Values> RunGather(const Draw& draw, Communicator& group) {
  const Values input = Fill(draw, group.rank(), 0, draw.count);
  Values expected;
  for (int peer = 0; peer < group.size(); ++peer) Append(expected, Fill(draw, peer, 0, draw.count));
  Values output(expected.size());
  group.AllGather(input.data(), input.size() * 8, output.data());
  return {output, expected};
}

std::pair<Values, Values> RunDraw(const Draw& draw, Communicator& group) {
  const std::int64_t count = draw.count;
  Values data = Fill(draw, group.rank(), 0, count);
  switch (draw.kind) {
    case 0:
      group.Barrier();
      return {};
    case 1:
      group.Broadcast(data.data(), data.size() * 8, draw.root);
      return {data, Fill(draw, draw.root, 0, count)};
    case 2:
      group.AllReduce(data.data(), count, DType::kInt64, ReduceOp::kSum);
      return {data, SumOf(draw, group.size(), 0, count)};
    case 3:
      return RunGather(draw, group);
    case 4: {
      const Values input = Fill(draw, group.rank(), 0, count * group.size());
      group.ReduceScatter(input.data(), count, DType::kInt64, ReduceOp::kSum, data.data());
      return {data, SumOf(draw, group.size(), count * group.rank(), count)};
    }
    default:
      return RunAllToAll(draw, group);
  }
}

void CheckRandomSequences(int operations, unsigned num_seeds) {
  for (int size = 2; size <= 8; ++size)
    for (unsigned seed = 0; seed < num_seeds; ++seed) {
      const auto outcomes = RunGroup(size, [&](Communicator& group) {
        std::mt19937 random(seed * 100 + static_cast<unsigned>(size));
        for (int i = 0; i < operations; ++i) {
          const Draw draw(random, size);
          const auto [got, expected] = RunDraw(draw, group);
          if (got != expected)
            throw std::runtime_error("operation " + std::to_string(i) + " of kind " +
                                     std::to_string(draw.kind) + " is wrong");
        }
      });
      INFO("size " << size << ", seed " << seed);
      REQUIRE(outcomes == All(size, "ok"));
    }
}

}  // namespace

TEST_CASE("random sequences of operations give every member the right values") {
  CheckRandomSequences(150, 1);
}

TEST_CASE("many random sequences of operations give every member the right values", "[slow]") {
  CheckRandomSequences(300, 6);
}
