// A host or its process is lost while four of them train.
#include "tests/faults/checks.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

/// What makes a node silent for a while.
struct Outage {
  void (Bed::*begin)(int node);
  void (Bed::*end)(int node);
  std::chrono::seconds length;
  std::string host;  ///< what is said of its host meanwhile
};

/// The first node tells of the outage and of its end, and the training comes to its own.
void CheckOutlived(const Outage& outage, int node) {
  const std::string name = "n" + std::to_string(node);
  Bed bed({.settings = {"run.steps=12"}});
  bed.AwaitStep(2);
  (bed.*outage.begin)(node);
  std::this_thread::sleep_for(outage.length);  // the fault itself
  CHECK(bed.WaitForLine(0, "warning: " + name + " is silent for 1.0 s: " + outage.host, 100ms));
  (bed.*outage.end)(node);
  CHECK(bed.WaitForLine(0, "warning: " + name + " is back after", 5s));
  const auto endings = bed.WaitAll(kPatience);
  INFO(bed.Transcript());
  for (const Ending& ending : endings) {
    REQUIRE(ending.ended);
    CHECK(ending.exit_code == 0);
  }
  CHECK(bed.job().Losses().size() == 12);
}

}  // namespace

TEST_CASE("a killed process is named by all others within a second") {
  if (NoBed()) return;
  Bed bed;
  bed.AwaitStep(2);
  bed.Kill(2);
  CheckNamed(bed, 2, "n2: its process ended without saying goodbye", 1.0);
  CHECK(bed[2].WaitForEnd(1s).exit_code == 128 + SIGKILL);
}

TEST_CASE("a host whose cable is pulled is named within five seconds, and knows it of itself") {
  if (NoBed()) return;
  Bed bed;
  bed.AwaitStep(2);
  bed.LinkDown(1);
  CheckNamed(bed, 1, "n1: it vanished: its host has not answered", 5.0);
  const auto line =
      bed.WaitForLine(1, "lost n0, n2, n3: none of them answers: this node is cut off", 5s);
  const Ending ending = bed[1].WaitForEnd(kPatience);
  INFO(bed.Transcript());
  REQUIRE(line);
  CHECK(bed.SinceFault(line->at) < 5.0);
  CHECK(ending.exit_code == kExitLost);
}

TEST_CASE("a process that is stopped for three seconds is reported, comes back and trains on") {
  if (NoBed()) return;
  CheckOutlived({&Bed::Stop, &Bed::Continue, 3s, "its host answers"}, 3);
}

TEST_CASE("a cable that is out for two seconds does not end the training") {
  if (NoBed()) return;
  CheckOutlived({&Bed::LinkDown, &Bed::LinkUp, 2s, "its host does not answer"}, 2);
}

TEST_CASE("a process that is stopped for good is named within ten seconds") {
  if (NoBed()) return;
  Bed bed;
  bed.AwaitStep(2);
  bed.Stop(0);
  CheckNamed(bed, 0, "n0: it is stopped: its host answers", 10.0);
}
