#include "app/held_state.hpp"

#include <catch2/catch.hpp>

#include "checkpoint/manifest.hpp"

namespace troupe {
namespace {

Hello Holding(std::vector<HeldState> held) {
  Hello hello;
  hello.held = std::move(held);
  return hello;
}

}  // namespace

TEST_CASE("a job goes on from the newest state that its processes hold whole", "[app]") {
  const std::vector<std::string> some = {"f", "g", "h"};
  const std::vector<std::string> rest = {"i", "j"};
  const std::vector<std::string> all = {"f", "g", "h", "i", "j"};
  CHECK_FALSE(NewestHeld({Hello{}, Hello{}}));
  CHECK_FALSE(NewestHeld({Holding({{"a", "sum", 4, all, some}}), Hello{}}));
  const auto two =
      NewestHeld({Holding({{"a", "sum", 4, all, some}}), Holding({{"a", "", 0, {}, rest}})});
  REQUIRE(two);
  CHECK(two->folder == "a");
  CHECK(two->step == 4);
  CHECK(two->manifest_sum == "sum");
  // No process has the manifest, so the state may be incomplete.
  CHECK_FALSE(NewestHeld({Holding({{"a", "", 0, {}, some}}), Holding({{"a", "", 0, {}, rest}})}));
  // Files of two states are not mixed, and the newest may lack some.
  CHECK_FALSE(
      NewestHeld({Holding({{"a", "x", 4, all, some}}), Holding({{"b", "y", 5, all, rest}})}));
  const auto newest = NewestHeld({Holding({{"a", "x", 4, all, all}, {"c", "z", 6, all, some}}),
                                  Holding({{"b", "y", 5, all, all}})});
  REQUIRE(newest);
  CHECK(newest->folder == "b");
}

TEST_CASE("a process tells what it holds, with the sum of the manifest", "[app]") {
  HeldFiles held;
  held.Put("a", {"f", held.Allocate(1)});
  const auto states = HeldBy(held);
  REQUIRE(states.size() == 1);
  CHECK(states[0].folder == "a");
  CHECK(states[0].manifest_sum.empty());
  CHECK(states[0].files == std::vector<std::string>{"f"});
  RunState run{.step = 7, .steps = 9};
  const StoredShard stored{.file = "f",
                           .sha256 = std::string(64, '0'),
                           .header_sha256 = std::string(64, '0'),
                           .tensors = {}};
  held.Complete("a", FormatManifest(MakeManifest(run, {{{"m", 0, 0, 0, 0}, stored}})));
  CHECK(HeldBy(held)[0].step == 7);
  CHECK(HeldBy(held)[0].all_files.size() == 1);
  CHECK(HeldBy(held)[0].manifest_sum.size() == 64);
}

}  // namespace troupe
