#include "transport/spanning_group.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include <catch2/catch.hpp>

#include "gpu/kernels/bfloat16.hpp"
#include "tests/transport/known_operations.hpp"
#include "tests/transport/spanning_crew.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

using Homes = std::vector<ProcessId>;

const std::vector<Homes> kPlacements = {
    {0},          {0, 1},          {1, 0},          {0, 1, 2},
    {3, 0, 2, 1}, {0, 1, 2, 3, 4}, {0, 0, 1, 1},    {0, 0, 1, 1, 2, 2},
    {0, 1, 0, 1}, {0, 0, 0, 1},    {0, 1, 1, 0, 2}, {5, 4, 3, 2, 1, 0}};

std::string TextOf(const Homes& homes) { return ToString(Shape(homes.begin(), homes.end())); }

bool Reduces(int kind) {
  return kind == KnownOperation::kAllReduce || kind == KnownOperation::kReduceScatter ||
         kind == KnownOperation::kReduceScatterInPlace;
}

/// Sums are taken of everything. Many elements of every other kind are enough in one dtype.
template <class T>
void RunEverything(Communicator& group, DType dtype, std::int64_t count) {
  std::int64_t salt = 0;
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax})
    for (int kind = 0; kind < KnownOperation::kNumKinds; ++kind) {
      ++salt;
      const bool sums = Reduces(kind) && op == ReduceOp::kSum;
      if (!sums && count > 1000 && dtype != DType::kFloat32) continue;
      if (!Reduces(kind) && op == ReduceOp::kMax) continue;
      Known<T>::Run(group, dtype, {kind, count, salt, static_cast<int>(salt) % group.size(), op});
    }
}

template <class T>
void CheckEverything(DType dtype) {
  unsigned seed = 0;
  for (const Homes& homes : kPlacements)
    for (const std::int64_t count : {0, 1, 7, 1000, 100003}) {
      INFO("homes " << TextOf(homes) << ", " << count << " " << ToString(dtype));
      REQUIRE(RunSpanning(homes,
                          [&](Communicator& group) { RunEverything<T>(group, dtype, count); },
                          {.seed = ++seed}) == All(static_cast<int>(homes.size()), "ok"));
    }
}

}  // namespace

TEST_CASE("all operations on float32 are right wherever the members live") {
  CheckEverything<float>(DType::kFloat32);
}

TEST_CASE("all operations on float64 are right wherever the members live") {
  CheckEverything<double>(DType::kFloat64);
}

TEST_CASE("all operations on int64 are right wherever the members live") {
  CheckEverything<std::int64_t>(DType::kInt64);
}

TEST_CASE("all operations on int32 are right wherever the members live") {
  CheckEverything<std::int32_t>(DType::kInt32);
}

TEST_CASE("sums of bfloat16 are rounded once, wherever the members live") {
  // 1 and 2^-8: half of what bfloat16 tells apart from 1. Two of them together are seen, each alone
  // is rounded away, so every partial sum that is rounded shows.
  constexpr float kSmall = 1.0F / 256;
  for (const Homes& homes : kPlacements) {
    const int members = static_cast<int>(homes.size());
    const BFloat16 expected(1.0F + kSmall * static_cast<float>(members - 1));
    for (const std::int64_t count : {1, 1000, 100003}) {
      const auto check = [&](const std::vector<BFloat16>& values) {
        for (const BFloat16 value : values) {
          if (value.bits != expected.bits) throw std::runtime_error("rounded in between");
        }
      };
      INFO("homes " << TextOf(homes) << ", " << count);
      REQUIRE(RunSpanning(homes, [&](Communicator& group) {
                const BFloat16 own(group.rank() == 0 ? 1.0F : kSmall);
                std::vector<BFloat16> all(static_cast<std::size_t>(count), own);
                group.AllReduce(all.data(), count, DType::kBFloat16, ReduceOp::kSum);
                check(all);
                const std::vector<BFloat16> input(static_cast<std::size_t>(count * members), own);
                std::vector<BFloat16> part(static_cast<std::size_t>(count));
                group.ReduceScatter(input.data(), count, DType::kBFloat16, ReduceOp::kSum,
                                    part.data());
                check(part);
              }) == All(members, "ok"));
    }
  }
}

TEST_CASE("all operations on uint8 are right wherever the members live") {
  CheckEverything<std::uint8_t>(DType::kUInt8);
}

TEST_CASE("reductions of more segments than are under way at once are right") {
  for (const Homes& homes : {Homes{0, 1}, Homes{0, 1, 2}, Homes{0, 1, 1}}) {
    INFO("homes " << TextOf(homes));
    REQUIRE(RunSpanning(homes, [](Communicator& group) {
              const std::int64_t count = 2000003;
              Known<float>::Run(group, DType::kFloat32,
                                {KnownOperation::kAllReduce, count, 3, 0, ReduceOp::kSum});
              Known<float>::Run(group, DType::kFloat32,
                                {KnownOperation::kReduceScatter, count / 2, 4, 0, ReduceOp::kSum});
            }) == All(static_cast<int>(homes.size()), "ok"));
  }
}

TEST_CASE("with one member in every process floats have the bits of a group in one process") {
  // Values whose sum depends on the order of its addends.
  const auto input_of = [](int rank, std::size_t count) {
    std::mt19937 random(static_cast<unsigned>(rank));
    std::vector<float> values(count);
    for (float& value : values)
      value = std::ldexp(static_cast<float>(random()) - 2e9F, static_cast<int>(random() % 40));
    return values;
  };
  for (const int size : {3, 4, 6}) {
    for (const std::int64_t count : {5, 1000, 100003}) {
      const auto members = static_cast<std::size_t>(size);
      const auto elements = static_cast<std::size_t>(count);
      const auto collect = [&](std::vector<std::vector<float>>& results) {
        results.resize(members);
        return [&](Communicator& group) {
          const std::vector<float> input = input_of(group.rank(), elements * members);
          std::vector<float> sum(input.begin(), input.begin() + count);
          group.AllReduce(sum.data(), count, DType::kFloat32, ReduceOp::kSum);
          std::vector<float>& result = results[static_cast<std::size_t>(group.rank())];
          result.resize(elements);
          group.ReduceScatter(input.data(), count, DType::kFloat32, ReduceOp::kSum, result.data());
          result.insert(result.end(), sum.begin(), sum.end());
        };
      };
      std::vector<std::vector<float>> together;
      std::vector<std::vector<float>> apart;
      Homes homes;
      for (int rank = 0; rank < size; ++rank) homes.push_back(size - 1 - rank);
      REQUIRE(RunGroup(size, collect(together)) == All(size, "ok"));
      REQUIRE(RunSpanning(homes, collect(apart)) == All(size, "ok"));
      for (std::size_t rank = 0; rank < members; ++rank) {
        INFO("member " << rank << " of " << size << ", count " << count);
        REQUIRE(together[rank].size() == 2 * elements);
        REQUIRE(std::memcmp(together[rank].data(), apart[rank].data(), 8 * elements) == 0);
      }
    }
  }
}

TEST_CASE("where processes have several members all of them get the same bits in every run") {
  std::set<std::vector<float>> different;
  for (unsigned seed = 0; seed < 5; ++seed) {
    std::vector<std::vector<float>> results(4);
    REQUIRE(RunSpanning({0, 1, 0, 1},
                        [&](Communicator& group) {
                          std::vector<float> values(10001);
                          for (std::size_t i = 0; i < values.size(); ++i)
                            values[i] = 1.0F / static_cast<float>(i + 1) *
                                        static_cast<float>(group.rank() * 3 + 1);
                          group.AllReduce(values.data(), 10001, DType::kFloat32, ReduceOp::kSum);
                          results[static_cast<std::size_t>(group.rank())] = values;
                        },
                        {.seed = seed}) == All(4, "ok"));
    different.insert(results.begin(), results.end());
  }
  CHECK(different.size() == 1);
}

TEST_CASE("no member completes an operation that another has not begun") {
  constexpr int kRounds = 300;
  std::atomic<int> completed = 0;
  std::size_t max_early = 0;
  SpanningOptions options;
  options.inspect = [&](MemoryNetwork& network) { max_early = network.max_early(); };
  REQUIRE(RunSpanning(
              {0, 1, 2},
              [&](Communicator& group) {
                std::array<char, 16> data = {};
                for (int i = 0; i < kRounds; ++i) {
                  if (group.rank() == 2 && completed > i)
                    throw std::runtime_error("the root did not wait");
                  group.Broadcast(data.data(), data.size(), 0);
                  if (group.rank() == 0) completed = i + 1;
                }
              },
              options) == All(3, "ok"));
  CHECK(max_early <= 4);  // a call and its data, of this operation and the next
}

TEST_CASE("several groups of the same processes do not disturb each other") {
  const std::vector<GroupSpec> groups = {{"tensor language.s0", {0, 1}},
                                         {"data language.s0", {1, 0}},
                                         {"tensor vision.s0", {0, 1, 0, 1}},
                                         {"tied language", {0, 0, 1}},
                                         {"inside", {1, 1}}};
  const auto outcomes = RunSpanning(groups, [](Communicator& group, const GroupSpec& spec) {
    std::mt19937 random(static_cast<unsigned>(spec.name.size()));
    for (int i = 0; i < 100; ++i) {
      const int kind = static_cast<int>(random() % KnownOperation::kNumKinds);
      Known<std::int32_t>::Run(
          group, DType::kInt32,
          {kind, static_cast<std::int64_t>(random() % 3000), i, 0, ReduceOp::kSum});
    }
  });
  for (const auto& outcome : outcomes)
    CHECK(outcome == All(static_cast<int>(outcome.size()), "ok"));
}

TEST_CASE("two thousand random operations give every member the right values") {
  unsigned seed = 0;
  for (const Homes& homes : {Homes{0, 1}, Homes{0, 1, 2}, Homes{0, 1, 0, 1}, Homes{0, 0, 1, 2}}) {
    INFO("homes " << TextOf(homes));
    REQUIRE(RunSpanning(homes,
                        [&](Communicator& group) {
                          std::mt19937 random(7);
                          for (int i = 0; i < 500; ++i) {
                            const int kind = static_cast<int>(random() % KnownOperation::kNumKinds);
                            const std::uint32_t scale = random() % 32;
                            const std::uint32_t limit =
                                scale == 0 ? 100000 : (scale < 4 ? 3000 : 20);
                            const auto count = static_cast<std::int64_t>(random() % limit);
                            const int root = static_cast<int>(random() % homes.size());
                            Known<std::int64_t>::Run(group, DType::kInt64,
                                                     {kind, count, i, root, ReduceOp::kSum});
                          }
                        },
                        {.seed = ++seed}) == All(static_cast<int>(homes.size()), "ok"));
  }
}

TEST_CASE("a process sees the views of its own members only") {
  MemoryNetwork network(3, std::make_shared<AbortSignal>(), 1);
  const auto abort = std::make_shared<AbortSignal>();
  const auto views = MakeGroup("g", {0, 1, 0}, network.plane(0), abort);
  REQUIRE(views.size() == 3);
  CHECK((views[0] != nullptr && views[1] == nullptr && views[2] != nullptr));
  CHECK(views[2]->rank() == 2);
  CHECK(views[2]->size() == 3);
  for (const auto& view : MakeGroup("g", {0, 1, 0}, network.plane(2), abort))
    CHECK(view == nullptr);
  for (const auto& view : MakeGroup("h", {1, 1}, network.plane(0), abort)) CHECK(view == nullptr);
}

TEST_CASE("a group with one home needs no plane, whatever that home is called") {
  const auto views = MakeGroup("g", {7}, nullptr, nullptr);
  REQUIRE(views.size() == 1);
  views[0]->Barrier();
}

TEST_CASE("a group that cannot be made says why") {
  const auto abort = std::make_shared<AbortSignal>();
  MemoryNetwork network(2, abort, 1);
  CHECK_THROWS_WITH(MakeGroup("g", {}, nullptr, abort),
                    "group g: expected 1 to 4096 members, got 0");
  CHECK_THROWS_WITH(MakeGroup("g", {0, 1}, nullptr, abort),
                    "group g: expected a data plane between its 2 processes, got none");
  CHECK_THROWS_WITH(MakeGroup("g", {0, 2}, network.plane(0), abort),
                    "group g: member 1: expected a process in [0, 2), got 2");
  CHECK_THROWS_WITH(MakeGroup("g", {0, 1}, network.plane(0), nullptr),
                    "group g: expected the job's abort signal, got none");
}

TEST_CASE("parties are ordered by their lowest members and cut into runs") {
  const std::vector<Party> parties = PartiesOf({4, 1, 1, 4, 4, 0});
  REQUIRE(parties.size() == 3);
  CHECK(parties[0].process == 4);
  CHECK(parties[0].members == std::vector<int>{0, 3, 4});
  REQUIRE(parties[0].runs.size() == 2);
  CHECK((parties[0].runs[1].first == 3 && parties[0].runs[1].count == 2));
  CHECK((parties[1].runs.size() == 1 && parties[1].runs[0].count == 2));
  CHECK(parties[2].leader() == 5);
}

TEST_CASE("a stream's number is the FNV-1a hash of its name") {
  CHECK(StreamOf("") == 0xcbf29ce484222325ULL);
  CHECK(StreamOf("a") == 0xaf63dc4c8601ec8cULL);
}
