// Actors that sleep and messages that are lost, as a fault in the program would make them.
#include "tests/faults/checks.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

/// From the last step that was printed to the first line with `text`, once the job has ended with
/// exit code 1 and those words as its last.
double NamedAfterLastStep(const LocalBed& bed, const std::string& text) {
  const Program& program = bed.program();
  const Ending ending = program.WaitForEnd(kPatience);
  INFO(program.Transcript());
  REQUIRE(ending.ended);
  CHECK(ending.exit_code == 1);
  CHECK_THAT(ending.last_line, Catch::Contains(text));
  Clock::time_point last_step{};
  Clock::time_point named = ending.at;
  for (const Line& line : program.lines()) {
    if (line.text.rfind("step ", 0) == 0) last_step = line.at;
    if (line.text.find(text) != std::string::npos) named = std::min(named, line.at);
  }
  REQUIRE(last_step != Clock::time_point{});
  return std::chrono::duration<double>(named - last_step).count();
}

}  // namespace

TEST_CASE("sleeping actors and lost messages are named as what everything else waits for") {
  // All at a time: most of it is waiting.
  const LocalBed sleeping({.nodes = 2, .faults = {"sleep@stage language.s0 dp0@Activation@10"}});
  const LocalBed lost(
      {.nodes = 2, .faults = {"lose@leader vision>language/destination.0@Slice@37"}});
  // As a thread that a debugger or a broken driver holds between two messages.
  const LocalBed frozen({.nodes = 2, .faults = {"freeze@device 4@RunForward@10"}});
  CHECK(NamedAfterLastStep(frozen, "device 4 on n1 does not read its mailbox: ") < 10.0);
  CHECK(NamedAfterLastStep(sleeping,
                           "stage language.s0 dp0 on n0 is stuck: its handler of Activation has "
                           "run for") < 10.0);
  CHECK(NamedAfterLastStep(lost, "the message is lost") < 15.0);
}
