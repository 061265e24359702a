// When an encoder's state moves, and how long its backward waits for that, on a simulated clock.
#include <map>
#include <string>

#include <catch2/catch.hpp>

#include "actors/virtual_time.hpp"
#include "modules/synthetic/shape_program.hpp"
#include "tests/actors/offload_fixture.hpp"

namespace troupe {
namespace {

/// A colocated encoder and language model on one rank; microbatches take 5 and 10, the encoder 100
/// and 200, what leaves and comes back as long as is said.
VirtualRun InVirtualTime(std::int64_t ahead, std::int64_t offload_ns, std::int64_t restore_ns) {
  Config config = OffloadingConfig(Layout(), Layout());
  config.modules[0].offload_ahead = ahead;
  config.schedule.microbatches = 4;
  VirtualJob job;
  job.plan = std::make_shared<const JobPlan>(config);
  job.make_program = MakeShapePrograms(config);
  job.source = std::make_shared<SyntheticSource>(config);
  job.takes_ns = [=](WorkKind kind, int stage, std::int64_t) -> std::int64_t {
    if (kind == WorkKind::kForward) return stage == 0 ? 100 : 5;
    if (kind == WorkKind::kBackward) return stage == 0 ? 200 : 10;
    if (kind == WorkKind::kOffload) return offload_ns;
    return kind == WorkKind::kRestore ? restore_ns : 0;
  };
  return RunInVirtualTime(job);
}

/// What ran for the encoder, and when; each kind once.
std::map<std::string, std::pair<std::int64_t, std::int64_t>> EncoderTimes(const VirtualRun& run) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> at;
  for (const PassRecord& record : run.records) {
    if (record.stage == 0) at[ToString(record.kind)] = {record.begin_ns, record.end_ns};
  }
  return at;
}

}  // namespace

TEST_CASE("offload_ahead says how many gradients are owed when the state comes back", "[actors]") {
  const auto restored_at = [](std::int64_t ahead) {
    return EncoderTimes(InVirtualTime(ahead, 1, 10)).at("restore").first;
  };
  CHECK(restored_at(0) == 100 + 4 * 15);
  CHECK(restored_at(1) == 100 + 3 * 15);
  CHECK(restored_at(3) == 100 + 1 * 15);
  CHECK(restored_at(99) == 100 + 1 * 15);  // never before a gradient has come
}

TEST_CASE("copies that are shorter than the language model's phase cost nothing", "[actors]") {
  constexpr std::int64_t kWithout = 100 + 4 * (5 + 10) + 200;
  CHECK(InVirtualTime(0, 0, 0).makespan_ns() == kWithout);
  CHECK(InVirtualTime(1, 30, 15).makespan_ns() == kWithout);  // one microbatch hides 15
  CHECK(InVirtualTime(1, 30, 16).makespan_ns() == kWithout + 1);
  CHECK(InVirtualTime(0, 30, 16).makespan_ns() == kWithout + 16);
  CHECK(InVirtualTime(2, 30, 30).makespan_ns() == kWithout);
  CHECK(InVirtualTime(3, 40, 30).makespan_ns() == kWithout + 10);  // it must have left first
  const VirtualRun run = InVirtualTime(1, 30, 40);
  REQUIRE(run.failure == "");
  const auto at = EncoderTimes(run);
  CHECK(at.at("offload") == std::pair<std::int64_t, std::int64_t>(100, 130));
  CHECK(at.at("restore") == std::pair<std::int64_t, std::int64_t>(145, 185));
  CHECK(at.at("B") == std::pair<std::int64_t, std::int64_t>(185, 385));
}

}  // namespace troupe
