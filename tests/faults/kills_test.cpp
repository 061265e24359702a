// Jobs whose processes are killed in every phase of their life go on and end as if nothing had been.
// Hundreds of kills, about an hour on two cores: TROUPE_KILLS=FILE ./test_faults "[.kills]" appends
// the results to FILE, and goes on where FILE ends.
#include "tests/faults/kills.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include <catch2/catch.hpp>

using namespace troupe::testing;

namespace {

void Check(const KillResult& result) {
  INFO(NameOf(result.trial.phase) << ", seed " << result.trial.seed << ": " << result.what << "\n"
                                  << result.transcript);
  CHECK(result.problem == "");
}

std::string Report(const KillResult& result) {
  return std::string(NameOf(result.trial.phase)) + " " + std::to_string(result.trial.seed) + ": " +
         result.what + ": " + std::to_string(result.seconds) + " s" +
         (result.problem.empty() ? "" : ": WRONG: " + result.problem);
}

}  // namespace

TEST_CASE("jobs go on after processes were killed, and end as if nothing had been") {
  constexpr std::uint64_t kSeeds = 5;
  const Undisturbed expected = RunUndisturbed();
  std::vector<KillResult> results;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (int phase = 0; phase < kNumKillPhases; ++phase) {
      results.push_back(RunKill({static_cast<KillPhase>(phase), seed}, expected));
      Check(results.back());
    }
  }
  WARN(TableOf(results));
}

TEST_CASE("hundreds of kills in every phase", "[.kills]") {
  constexpr std::uint64_t kSeeds = 67;
  const char* const path = std::getenv("TROUPE_KILLS");
  REQUIRE(path != nullptr);
  std::vector<KillResult> results;
  std::ifstream before(path);
  for (std::string line; std::getline(before, line);) {
    if (auto result = FromLine(line)) results.push_back(*std::move(result));
  }
  std::ofstream file(path, std::ios::app);
  const Undisturbed expected = RunUndisturbed();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (int phase = 0; phase < kNumKillPhases; ++phase) {
      const KillTrial trial{static_cast<KillPhase>(phase), seed};
      const bool is_known = std::ranges::any_of(results, [&](const KillResult& known) {
        return known.trial.phase == trial.phase && known.trial.seed == trial.seed;
      });
      if (is_known) continue;
      results.push_back(RunKill(trial, expected));
      const KillResult& result = results.back();
      std::cout << Report(result) << std::endl;
      if (!result.problem.empty()) std::cout << result.transcript << std::endl;
      file << ToLine(result) << std::endl;
    }
  }
  std::cout << '\n' << TableOf(results) << std::flush;
  for (const KillResult& result : results) Check(result);
}
