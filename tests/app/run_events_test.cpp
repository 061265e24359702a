#include "app/run_events.hpp"

#include <fstream>

#include <catch2/catch.hpp>

#include "tests/data/scratch_folder.hpp"

namespace troupe {

TEST_CASE("what happened to a run is noted, and read again", "[app]") {
  const ScratchFolder folder;
  CHECK(EventsOf(folder / "").empty());
  NoteEvent(folder / "",
            {.time = {}, .generation = 1, .step = 4, .from = "memory", .cause = "lost n1: a\nb"});
  std::ofstream(folder / kEventsFile, std::ios::app) << "cut sho\n{\"generation\": \"x\"}\n";
  NoteEvent(folder / "", {.time = {}, .generation = 2, .layout = "6 of 8 ranks"});
  const auto events = EventsOf(folder / "");
  REQUIRE(events.size() == 3);
  CHECK(events[0].time.size() == 20);
  CHECK(events[0].generation == 1);
  CHECK(events[0].step == 4);
  CHECK(events[0].cause == "lost n1: a\nb");
  CHECK(events[0].layout.empty());
  CHECK(events[1].generation == 0);
  CHECK(events[2].layout == "6 of 8 ranks");
  CHECK(ToLine({.time = "T",
                .generation = 1,
                .step = 4,
                .from = "memory",
                .cause = "lost n1: killed"}) ==
        "T generation 1 goes on after step 4, from memory: lost n1: killed");
  CHECK(ToLine({.time = "T", .generation = 2, .cause = "n0 was lost"}) ==
        "T generation 2 goes on from the beginning: n0 was lost");
  CHECK(ToLine({.time = "T", .generation = 2, .cause = "lost n1", .layout = "6 of 8 ranks"}) ==
        "T generation 2 goes on from the beginning, with 6 of 8 ranks: lost n1");
  SlowProcess slow{
      .name = "n1",
      .ranks = {4, 5, 6},
      .slowest = {.rank = 5, .own_s = 0.25, .usual_s = 0.125, .steps = 20, .next_to_peers = true}};
  NoteEvent(folder / "", {.time = {}, .step = 7, .slow = slow});
  const RunEvent noted = EventsOf(folder / "").back();
  REQUIRE(noted.slow);
  CHECK(noted.step == 7);
  CHECK(ToLine(*noted.slow) == ToLine(slow));
  CHECK(ToLine({.time = "T", .step = 7, .slow = slow}) ==
        "T step 7: ranks 4-6 (n1) are slow: the work of rank 5 in a step takes 250 ms, that of its "
        "peers 125 ms; 20 steps in a row");
  slow.ranks = {5};
  slow.slowest.next_to_peers = false;
  CHECK(ToLine(slow) ==
        "rank 5 (n1) is slow: the work of rank 5 in a step takes 250 ms, at first it took 125 ms; "
        "20 steps in a row");
  CHECK_THROWS_AS(NoteEvent(folder / "none", {}), std::runtime_error);
}

}  // namespace troupe
