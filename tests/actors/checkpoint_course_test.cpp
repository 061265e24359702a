// When checkpoints are due: the course alone, with a clock and a disk that the test plays.
#include "actors/checkpoint_course.hpp"

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

using Next = CheckpointCourse::Next;

Round Training(std::int64_t step) { return {.number = step, .train = true, .step = step}; }
Round Evaluation(std::int64_t step) { return {.number = step, .train = false, .step = step}; }

}  // namespace

TEST_CASE("without a folder no checkpoint is ever due", "[actors][course]") {
  for (const bool async : {false, true}) {
    CheckpointCourse course({.writes = false, .async = async, .every = 1, .every_ns = 1});
    course.Ask();
    course.OnBegin(Training(0));
    CHECK(course.BeforeNext(1000) == Next::kNothing);
    course.OnComplete(Training(0), 1000);
    CHECK_FALSE(course.holds());
    CHECK_FALSE(course.IsMissingAtEnd(true));
  }
}

TEST_CASE("a synchronous checkpoint holds the rounds after its own", "[actors][course]") {
  CheckpointCourse course({.writes = true, .every = 2});
  course.OnBegin(Training(0));
  CHECK_FALSE(course.holds());
  course.OnBegin(Training(1));
  CHECK(course.holds());
  CHECK(course.BeforeNext(0) == Next::kNothing);
  course.OnComplete(Training(0), 0);
  course.OnComplete(Training(1), 0);
  CHECK(course.steps_done() == 2);
  course.OnSaving(2, 0);
  CHECK_FALSE(course.holds());
  course.OnSaved(0);
  CHECK_FALSE(course.IsMissingAtEnd(true));
}

TEST_CASE("a checkpoint is due by time when so long has passed since the newest one",
          "[actors][course]") {
  for (const bool async : {false, true}) {
    CheckpointCourse course({.writes = true, .async = async, .every_ns = 600});
    course.Start(500);
    const auto is_due = [&](std::int64_t step, std::int64_t now_ns) {
      course.OnBegin(Training(step));
      course.OnComplete(Training(step), now_ns);
      return async ? course.BeforeNext(now_ns) == Next::kSave : course.holds();
    };
    CHECK_FALSE(is_due(0, 1099));
    CHECK(is_due(1, 1100));
    course.OnSaving(2, 1100);
    course.OnSaved(1400);
    // From when it was complete, if rounds had to wait for that.
    CHECK_FALSE(is_due(2, async ? 1699 : 1999));
    CHECK(is_due(3, async ? 1700 : 2000));
  }
}

TEST_CASE("one that the user asks for is of the latest step", "[actors][course]") {
  CheckpointCourse course({.writes = true, .async = true});
  course.OnBegin(Training(0));
  CHECK(course.BeforeNext(0) == Next::kNothing);
  course.Ask();
  CHECK(course.BeforeNext(0) == Next::kNothing);  // the step after it has begun
  course.OnBegin(Evaluation(1));
  CHECK(course.BeforeNext(0) == Next::kNothing);
  course.OnBegin(Training(1));
  CHECK(course.BeforeNext(0) == Next::kSave);
  CHECK(course.latest_step() == 2);
}

TEST_CASE("an asynchronous checkpoint waits for the one before, and the user hears it once",
          "[actors][course]") {
  CheckpointCourse course({.writes = true, .async = true, .every = 2});
  const auto next = [&](std::int64_t step) {
    course.OnBegin(Training(step));
    return course.BeforeNext(0);
  };
  CHECK(next(0) == Next::kNothing);
  CHECK(next(1) == Next::kSave);
  course.OnSaving(2, 0);
  CHECK(next(2) == Next::kNothing);
  CHECK(next(3) == Next::kLate);
  CHECK(next(4) == Next::kNothing);
  course.OnSaved(0);
  CHECK(next(5) == Next::kSave);
  course.OnSaving(6, 0);
  CHECK(next(6) == Next::kNothing);
  for (std::int64_t step = 0; step <= 6; ++step) course.OnComplete(Training(step), 0);
  course.OnSaved(0);
  CHECK_FALSE(course.IsMissingAtEnd(false));
  CHECK(course.IsMissingAtEnd(true));
}

TEST_CASE("whatever the disk does, no due step is forgotten and none is saved twice",
          "[actors][course]") {
  constexpr std::int64_t kSteps = 60;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 random(seed);
    const std::int64_t every = 1 + static_cast<std::int64_t>(random() % 7);
    CheckpointCourse course({.writes = true, .async = true, .every = every});
    std::vector<std::int64_t> saved;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      course.OnBegin(Training(step));
      if (course.is_saving() && random() % 3 == 0) course.OnSaved(0);
      if (course.BeforeNext(0) == Next::kSave) {
        REQUIRE_FALSE(course.is_saving());
        REQUIRE(course.latest_step() == step + 1);
        saved.push_back(step + 1);
        course.OnSaving(step + 1, 0);
      }
      course.OnComplete(Training(step), 0);
    }
    if (course.is_saving()) course.OnSaved(0);
    if (course.IsMissingAtEnd(false)) saved.push_back(kSteps);
    // After each due step comes a checkpoint of that step or of a later one.
    REQUIRE(saved.back() >= kSteps - kSteps % every);
    REQUIRE(std::ranges::adjacent_find(saved, std::ranges::greater_equal()) == saved.end());
  }
}

TEST_CASE("a state that was only in memory is written first", "[actors][course]") {
  CheckpointCourse course({.writes = true, .async = true, .every = 100});
  course.Resume(7, false);
  CHECK(course.BeforeNext(0) == CheckpointCourse::Next::kSave);
  CHECK(course.latest_step() == 7);
  CHECK(course.IsMissingAtEnd(false));
  course.OnSaving(7, 0);
  course.OnSaved(1);
  CHECK_FALSE(course.IsMissingAtEnd(true));

  CheckpointCourse from_disk({.writes = true, .async = true, .every = 100});
  from_disk.Resume(7, true);
  CHECK(from_disk.BeforeNext(0) == CheckpointCourse::Next::kNothing);
  CHECK_FALSE(from_disk.IsMissingAtEnd(true));

  CheckpointCourse waits({.writes = true, .async = false, .every = 100});
  waits.Resume(7, false);
  CHECK(waits.holds());
}

}  // namespace troupe
