#include "plan/peers.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"

namespace troupe {
namespace {

std::map<int, std::vector<int>> Load(const std::string& name,
                                     std::vector<std::string> overrides = {}) {
  return PeersOf(JobPlan(LoadConfig("configs/" + name + ".toml", overrides).config));
}

using Ranks = std::vector<int>;

}  // namespace

TEST_CASE("ranks along tp and dp do the same work, those of other stages do not", "[plan]") {
  const auto peers = Load("shapes");  // vision dp4 on 4-7, language tp2 pp2 on 0-3
  CHECK(peers.size() == 8);
  CHECK(peers.at(0) == Ranks{1});
  CHECK(peers.at(3) == Ranks{2});
  CHECK(peers.at(5) == Ranks{4, 6, 7});
}

TEST_CASE("parts of a sequence and other modules on a rank make other work", "[plan]") {
  const auto cut = Load("shapes", {"modules.language.layout={cp=2,dp=2}"});
  CHECK(cut.at(0) == Ranks{2});
  CHECK(cut.at(1) == Ranks{3});
  const auto mixed = Load("shapes_mixed");  // vision and language on 0-3, detail on 4-7
  CHECK(mixed.at(4) == Ranks{5, 6, 7});
  CHECK(std::ranges::count(mixed.at(0), 4) == 0);
  const auto alone = Load("shapes", {"modules.language.layout={pp=4}"});
  CHECK(alone.at(2).empty());
}

}  // namespace troupe
