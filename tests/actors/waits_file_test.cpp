// The waits of all actors, as a file.
#include <catch2/catch.hpp>

#include "actors/wait_lists.hpp"

namespace troupe {

TEST_CASE("waits and debts are written by their names", "[actors]") {
  const ActorWaits a{"stage a",
                     "n1",
                     true,
                     {{"gradient", WaitUnit::kMicrobatch, 3, "stage b", 7, "Activation", true}},
                     {{"director", 2}}};
  CHECK(ToJson({a}) == R"([
 {
  "busy": true,
  "node": "n1",
  "owes": [
   {
    "request": 2,
    "to": "director"
   }
  ],
  "waits": [
   {
    "message": "Activation",
    "number": 3,
    "on_its_way": true,
    "request": 7,
    "unit": "microbatch",
    "what": "gradient",
    "whom": "stage b"
   }
  ],
  "who": "stage a"
 }
]
)");
  CHECK(ToJson({}) == "[]\n");
}

TEST_CASE("a cause is a line, and a line for each actor", "[actors]") {
  CHECK(CauseText(Failure("the disk is full")) == "the disk is full\n");
  CHECK(CauseText({"no answer", FailureKind::kStall, {"device 3", "stage a.s0 dp0"}}) ==
        "no answer\ndevice 3\nstage a.s0 dp0\n");
}

}  // namespace troupe
