#include "transport/wait.hpp"

#include <catch2/catch.hpp>

namespace troupe {

TEST_CASE("a wait in words names what it has: unit, number, whom", "[transport]") {
  const Wait gradient = {"gradient", WaitUnit::kMicrobatch, 3, "stage a"};
  CHECK(ToString(gradient) == "the gradient of microbatch 3 from stage a");
  CHECK(WithoutArticle(gradient) == "gradient of microbatch 3 from stage a");
  CHECK(ToString({"hello", WaitUnit::kNone, 0, ""}) == "the hello");
  CHECK(WithoutArticle({"hello", WaitUnit::kNone, 0, "process 1"}) == "hello from process 1");
}

}  // namespace troupe
