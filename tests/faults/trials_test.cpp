// About half an hour on two cores: ./test_faults "[slow]"
#include "tests/faults/trials.hpp"

#include <atomic>
#include <iostream>
#include <mutex>
#include <thread>

#include "tests/faults/checks.hpp"

using namespace troupe::testing;

namespace {

constexpr std::size_t kTrials = 200;
/// Of what a bed does most is waiting.
constexpr int kBedsAtOnce = 2;

}  // namespace

TEST_CASE("200 faults at random moments are all named, in time", "[slow]") {
  if (NoBed()) return;
  std::vector<TrialResult> results;
  std::mutex mutex;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < kTrials; i = next++) {
      TrialResult result = RunTrial({i % FaultKinds().size(), i});
      const std::lock_guard lock(mutex);
      std::cout << i << ": " << result.what << ": " << result.seconds << " s"
                << (result.problem.empty() ? "" : ": WRONG: " + result.problem) << std::endl;
      results.push_back(std::move(result));
    }
  };
  {
    std::vector<std::jthread> beds;
    for (int bed = 0; bed < kBedsAtOnce; ++bed) beds.emplace_back(work);
  }
  std::cout << '\n' << TableOf(results) << std::flush;
  REQUIRE(results.size() == kTrials);
  for (const TrialResult& result : results) {
    if (result.problem.empty()) continue;
    INFO(result.what << ", seed " << result.trial.seed << "\n" << result.transcript);
    FAIL_CHECK(result.problem);
  }
}
