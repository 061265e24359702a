#include "actors/mirror_course.hpp"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

Round Training(std::int64_t step, std::int64_t number) {
  Round round;
  round.step = step;
  round.number = number;
  return round;
}

using Due = std::optional<MirrorCourse::Due>;

}  // namespace

TEST_CASE("the state after each step is mirrored before the next one changes it", "[actors]") {
  MirrorCourse course(1);
  CHECK_FALSE(course.Next());
  course.OnBegin(Training(0, 0));
  CHECK(course.Next() == Due({1, 0}));
  CHECK(course.is_under_way());
  CHECK(course.MayUpdate(1));  // that makes the state
  CHECK_FALSE(course.MayUpdate(2));
  course.OnBegin(Training(1, 1));
  CHECK_FALSE(course.Next());  // one at a time
  course.OnMirrored();
  CHECK_FALSE(course.is_under_way());
  CHECK(course.MayUpdate(2));
  CHECK(course.Next() == Due({2, 1}));
}

TEST_CASE("with mirror_every = 3 a job goes back three steps at most", "[actors]") {
  MirrorCourse course(3);
  for (const std::int64_t step : {0, 1}) course.OnBegin(Training(step, step));
  CHECK_FALSE(course.Next());
  Round evaluation = Training(2, 2);
  evaluation.train = false;
  course.OnBegin(evaluation);
  CHECK_FALSE(course.Next());
  course.OnBegin(Training(2, 3));
  CHECK(course.MayUpdate(3));
  CHECK_FALSE(course.MayUpdate(4));  // it is due
  CHECK(course.Next() == Due({3, 3}));
  CHECK(course.MayUpdate(3));
  CHECK_FALSE(course.MayUpdate(4));  // steps 1 to 3 would be lost, and 4
  course.OnMirrored();
  CHECK(course.MayUpdate(4));
}

TEST_CASE("the state that a job goes on from is mirrored first", "[actors]") {
  MirrorCourse course(2);
  course.OnBegin(Training(7, 0));
  CHECK(course.Next() == Due({7, MirrorCourse::kBeforeRounds}));
  CHECK_FALSE(course.MayUpdate(8));
  course.OnMirrored();
  CHECK(course.MayUpdate(8));
  CHECK_FALSE(course.MayUpdate(9));
  CHECK(course.Next() == Due({8, 0}));
}

TEST_CASE("without mirrors nothing waits", "[actors]") {
  MirrorCourse course;
  CHECK_FALSE(course.mirrors());
  course.OnBegin(Training(4, 0));
  CHECK_FALSE(course.Next());
  CHECK(course.MayUpdate(5));
}

}  // namespace troupe
