#include "modules/groups.hpp"

#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "kinds/llama.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

/// The language model of the small configuration in a layout, all shards with their groups.
class Shards {
 public:
  explicit Shards(Layout layout, bool tied_head = false, Balance balance = Balance::kSample) {
    Config config = SmallModulesConfig();
    ModuleConfig& language = config.modules[2];
    language.layout = layout;
    language.moe.balance = balance;
    if (layout.ep * layout.etp > 1) language.As<LlamaConfig>().experts.count = 8;
    language.As<LlamaConfig>().tied_head = tied_head;
    language.ranks.resize(static_cast<std::size_t>(layout.num_ranks()));
    std::iota(language.ranks.begin(), language.ranks.end(), 1);
    GroupTable table(config, std::make_shared<AbortSignal>());
    for (int pp = 0; pp < layout.pp; ++pp) {
      for (int dp = 0; dp < layout.dp; ++dp) {
        for (int tp = 0; tp < layout.tp; ++tp) {
          const ShardAddress shard{"language", pp, dp, tp, 0, 0};
          addresses_.push_back(shard);
          groups_.push_back(table.Take(shard));
        }
      }
    }
  }

  /// Every shard puts 2^i into one kind of group; returns what each got: who was in it, as bits.
  template <class View>
  std::vector<std::int64_t> Members(View kind) {
    std::vector<std::int64_t> sums(groups_.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      threads.emplace_back([&, i] {
        auto value = static_cast<double>(std::int64_t{1} << i);
        std::invoke(kind, groups_[i])->AllReduce(&value, 1, DType::kFloat64, ReduceOp::kSum);
        sums[i] = static_cast<std::int64_t>(value);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return sums;
  }

  const ShardGroups& operator[](std::size_t i) const { return groups_[i]; }
  std::size_t size() const { return groups_.size(); }
  const ShardAddress& address(std::size_t i) const { return addresses_[i]; }

 private:
  std::vector<ShardAddress> addresses_;
  std::vector<ShardGroups> groups_;
};

using Bits = std::vector<std::int64_t>;

std::unique_ptr<Communicator>& DataOf(ShardGroups& groups) { return groups.others.data; }
std::unique_ptr<Communicator>& ExpertDataOf(ShardGroups& groups) { return groups.experts.data; }

TEST_CASE("tensor and data groups join the shards that differ in that coordinate alone",
          "[modules]") {
  Shards shards({.tp = 2, .pp = 2, .dp = 2});  // bit = pp * 4 + dp * 2 + tp
  CHECK(shards.Members(&ShardGroups::tensor) == Bits{3, 3, 12, 12, 48, 48, 192, 192});
  CHECK(shards.Members(DataOf) == Bits{5, 10, 5, 10, 80, 160, 80, 160});
}

TEST_CASE("ranks that have all experts together are neighbours, whatever the replicas",
          "[modules]") {
  Shards shards({.tp = 2, .dp = 4, .ep = 2, .etp = 2});  // bit = dp * 2 + tp
  CHECK(shards.Members(&ShardGroups::expert) == Bits{15, 15, 15, 15, 240, 240, 240, 240});
  CHECK(shards.Members(ExpertDataOf) == Bits{17, 34, 68, 136, 17, 34, 68, 136});
  CHECK(shards.Members(&ShardGroups::balance) == Bits{3, 3, 12, 12, 48, 48, 192, 192});
  Shards joint({.tp = 2, .dp = 4, .ep = 4}, false, Balance::kMicrobatch);
  CHECK(joint.Members(&ShardGroups::balance) == Bits{15, 15, 15, 15, 240, 240, 240, 240});
}

TEST_CASE("a member's place in its group is its coordinate", "[modules]") {
  Shards shards({.tp = 4, .dp = 2});
  for (std::size_t i = 0; i < shards.size(); ++i) {
    CHECK(shards[i].tensor->rank() == shards.address(i).tp);
    CHECK(shards[i].others.data->rank() == shards.address(i).dp);
    CHECK(shards[i].key_value->rank() == shards.address(i).tp % 2);
  }
}

TEST_CASE("ranks that share a key/value head form a group", "[modules]") {
  CHECK(Shards({.tp = 8}).Members(&ShardGroups::key_value) ==
        Bits{15, 15, 15, 15, 240, 240, 240, 240});
  CHECK(Shards({.tp = 2}).Members(&ShardGroups::key_value) == Bits{1, 2});
}

TEST_CASE("a tied head joins first and last stage of the same replica and tp rank", "[modules]") {
  CHECK(Shards({.tp = 2, .pp = 3}, true).Members(&ShardGroups::tied) ==
        Bits{1 + 16, 2 + 32, 4, 8, 1 + 16, 2 + 32});
  CHECK(Shards({.tp = 2}, true).Members(&ShardGroups::tied) == Bits{1, 2});
  CHECK(Shards({.pp = 2}, false).Members(&ShardGroups::tied) == Bits{1, 2});
}

TEST_CASE("a shard's views are handed out once", "[modules]") {
  const Config config = SmallModulesConfig();
  GroupTable table(config, std::make_shared<AbortSignal>());
  const ShardAddress shard{"vision", 0, 0, 0, 0, 0};
  CHECK(table.Take(shard).tensor->size() == 1);
  CHECK_THROWS_WITH(table.Take(shard),
                    "vision.s0 dp0 rank 0: its groups are unknown or were taken before");
  CHECK_THROWS_AS(table.Take({"vision", 1, 0, 0, 0, 0}), std::logic_error);
}

TEST_CASE("an inline module has no groups of its own", "[modules]") {
  Config config = SmallModulesConfig();
  config.modules[0].inline_in = "language";
  GroupTable table(config, std::make_shared<AbortSignal>());
  CHECK_THROWS_AS(table.Take({"vision", 0, 0, 0, 0, 0}), std::logic_error);
}

}  // namespace
}  // namespace troupe
