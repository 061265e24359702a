// Files of waits, as they are written and as they must not be.
#include "cli/trace/waits.hpp"

#include <catch2/catch.hpp>

#include "actors/wait_lists.hpp"

namespace troupe {
namespace {

std::string Problem(const std::string& text) {
  try {
    ParseWaits(text);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

/// An actor with one wait that has this member besides.
std::string WithWait(const std::string& member) {
  return R"([{"who":"a","waits":[{"what":"x"},{"what":"y",)" + member + "}]}]";
}

}  // namespace

TEST_CASE("waits are read as they were written", "[cli]") {
  const std::vector<ActorWaits> written = {
      {"stage a",
       "n1",
       true,
       {{"gradient", WaitUnit::kMicrobatch, 3, "stage b", 7, "Activation"}},
       {}},
      {"stage b", "", false, {}, {{"director", 2}}}};
  const auto read = ParseWaits(ToJson(written));
  CHECK(ToJson(read) == ToJson(written));
  REQUIRE(read.size() == 2);
  CHECK(read[0].waits == written[0].waits);
  CHECK(read[1].owes == written[1].owes);
}

TEST_CASE("waits of another form are refused with their place", "[cli]") {
  CHECK(Problem("null") == "expected an array of waits, got null");
  CHECK(Problem("[null]") == "actor 0: expected an object, got null");
  CHECK(Problem("[{}]") == "actor 0: there is no \"who\"");
  CHECK(Problem(R"([{"who":"a"},{"who":"b","busy":1}])") ==
        "actor 1: \"busy\": expected a boolean, got a number");
  CHECK(Problem(R"([{"who":"a","waits":{}}])") ==
        "actor 0: \"waits\": expected an array, got an object");
  CHECK(Problem(R"([{"who":"a","owes":["x"]}])") ==
        "actor 0, debt 0: expected an object, got a string");
  CHECK(Problem(WithWait(R"("number":1.5)")) ==
        "actor 0, wait 1: \"number\": expected a whole number, got a number");
  CHECK(Problem(WithWait(R"("request":-1)")) ==
        "actor 0, wait 1: \"request\": expected a count, got a number");
  CHECK(Problem(WithWait(R"("whom":[])")) ==
        "actor 0, wait 1: \"whom\": expected a string, got an array");
  CHECK(Problem("[{\"who\":\"a\"}] x") == "expected JSON, byte 15 is malformed");
  CHECK(Problem(std::string(1 << 20, '[')) == "expected JSON, it ends in the middle");
}

TEST_CASE("no part of a file of waits and no other byte in it crashes the reader", "[cli]") {
  const std::string whole =
      ToJson({{"a", "n1", true, {{"g", WaitUnit::kRound, 3, "b", 7, "x", true}}, {{"b", 1}}}});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    Problem(whole.substr(0, i));
    for (const char byte : {'\0', '\xff', '"', '9', '{', ']'}) {
      std::string damaged = whole;
      damaged[i] = byte;
      CHECK_NOTHROW(Problem(damaged));
    }
  }
}

}  // namespace troupe
