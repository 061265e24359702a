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
  NoteEvent(folder / "", {.time = {}, .generation = 2});
  const auto events = EventsOf(folder / "");
  REQUIRE(events.size() == 3);
  CHECK(events[0].time.size() == 20);
  CHECK(events[0].generation == 1);
  CHECK(events[0].step == 4);
  CHECK(events[0].cause == "lost n1: a\nb");
  CHECK(events[1].generation == 0);
  CHECK(ToLine({"T", 1, 4, "memory", "lost n1: killed"}) ==
        "T generation 1 goes on after step 4, from memory: lost n1: killed");
  CHECK(ToLine({"T", 2, 0, "", ""}) ==
        "T generation 2 goes on from the beginning: process 0 was lost");
  CHECK_THROWS_AS(NoteEvent(folder / "none", {}), std::runtime_error);
}

}  // namespace troupe
