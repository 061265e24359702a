// Whom a job that has stalled hangs on.
#include "actors/wait_root.hpp"

#include <catch2/catch.hpp>

namespace troupe {

TEST_CASE("two that wait for each other over one microbatch have lost a message", "[actors]") {
  CHECK(RootOf({"director: round 3: 2 stage reports",
                "stage language.s0 dp0: activation of microbatch 8 <- leader v>l/destination.0",
                "leader v>l/destination.0: slice of microbatch 8 <- leader v>l/source.1",
                "leader v>l/source.1: gradient of microbatch 8 <- leader v>l/destination.0",
                "leader v>l/source.0: gradient of microbatch 8 <- leader v>l/destination.0"}) ==
        "leader v>l/destination.0 waits for the slice of microbatch 8 from leader v>l/source.1, "
        "which has sent it and waits for the gradient of microbatch 8: the message is lost");
}

TEST_CASE("waiting for each other over different microbatches is no loss", "[actors]") {
  CHECK(RootOf({"stage b: activation of microbatch 4 <- stage a",
                "stage a: gradient of microbatch 2 <- stage b",
                "stage b: pass of microbatch 2 <- device 3"}) ==
        "stage b waits for the pass of microbatch 2 from device 3, which waits for nobody");
}

TEST_CASE("the root is who waits for nobody", "[actors]") {
  CHECK(RootOf({"stage c: activation of microbatch 0 <- stage b",
                "stage b: activation of microbatch 0 <- stage a",
                "stage a: input of microbatch 0 <- its feed"}) ==
        "stage a waits for the input of microbatch 0 from its feed, which waits for nobody");
}

TEST_CASE("a stall that nobody explains says so", "[actors]") {
  CHECK(RootOf({}) == "nobody says what for");
  CHECK(RootOf({"update of language.s0: its devices"}) == "update of language.s0: its devices");
}

}  // namespace troupe
