// The actor that a stalled job waits for.
#include <catch2/catch.hpp>

#include "actors/wait_lists.hpp"

namespace troupe {
namespace {

/// The number of a request is that of its microbatch here, and 100 more.
Wait Asked(const std::string& what, std::int64_t number, const std::string& whom,
           const std::string& message = "") {
  return {what,   WaitUnit::kMicrobatch, number, whom, static_cast<std::uint64_t>(100 + number),
          message};
}
Wait Expected(const std::string& what, std::int64_t number, const std::string& whom,
              const std::string& message = "") {
  return {what, WaitUnit::kMicrobatch, number, whom, 0, message};
}

}  // namespace

TEST_CASE("a request that its receiver still waits for is lost", "[actors]") {
  CHECK(
      RootOf({{"director", "n0", false, {Asked("report", 3, "stage b")}, {}},
              {"stage b", "n0", false, {Expected("activation", 8, "leader")}, {{"director", 103}}},
              {"leader", "n0", false, {Expected("slice", 8, "source 1", "Slice")}, {}},
              {"source 0", "n1", false, {Asked("gradient", 8, "leader", "Slice")}, {}},
              {"source 1", "n1", false, {Asked("gradient", 8, "leader", "Slice")}, {}},
              {"leader", "", false, {}, {{"source 0", 108}}}}) ==
      WaitRoot{
          "leader on n0 waits for the slice of microbatch 8 from source 1 on n1, which has sent it "
          "and waits for the gradient: the message is lost",
          {"source 1", "leader"}});
}

TEST_CASE("an answer that no actor owes is lost", "[actors]") {
  CHECK(RootOf({{"a", "", false, {Asked("gradient", 2, "b"), Asked("gradient", 3, "b")}, {}},
                {"b", "", false, {Expected("activation", 4, "a")}, {{"a", 103}}}}) ==
        WaitRoot{"a waits for the gradient of microbatch 2 from b, which does not owe it: a "
                 "message between "
                 "them is lost",
                 {"b", "a"}});
}

TEST_CASE("an actor that is busy, or missing in the list, may owe anything", "[actors]") {
  CHECK(RootOf({{"a", "", false, {Asked("gradient", 2, "b")}, {}}, {"b", "", true, {}, {}}}) ==
        WaitRoot{"a waits for the gradient of microbatch 2 from b, which is busy", {"b", "a"}});
  CHECK(RootOf({{"a", "", false, {Asked("gradient", 2, "b")}, {}}}) ==
        WaitRoot{"a waits for the gradient of microbatch 2 from b", {"b", "a"}});
}

TEST_CASE(
    "the root waits for a message that no actor sends, or for an actor that waits for no other",
    "[actors]") {
  const std::vector<ActorWaits> chain = {{"c", "", false, {Expected("activation", 0, "b")}, {}},
                                         {"b", "", false, {Expected("activation", 0, "a")}, {}},
                                         {"a", "", false, {Expected("input", 0, "feed")}, {}},
                                         {"feed", "", false, {}, {}}};
  CHECK(RootOf(chain) ==
        WaitRoot{"a waits for the input of microbatch 0 from feed, which waits for no actor",
                 {"feed", "a"}});
  auto fetching = chain;
  fetching[1].waits = {Expected("bytes of the activation", 0, "a")};
  fetching[1].waits[0].on_its_way = true;
  CHECK(RootOf(fetching) ==
        WaitRoot{"b waits for the bytes of the activation of microbatch 0 from a", {"a", "b"}});
}

TEST_CASE("an actor that owes the answer and waits for nothing is the root", "[actors]") {
  CHECK(RootOf({{"a", "", false, {Asked("forward", 2, "b")}, {}},
                {"b", "", false, {}, {{"a", 102}}}}) ==
        WaitRoot{
            "a waits for the forward of microbatch 2 from b, which owes it and waits for nothing",
            {"b", "a"}});
}

TEST_CASE("a device that waits in a collective may owe anything", "[actors]") {
  CHECK(
      RootOf({{"lock",
               "",
               false,
               {Asked("forward", 2, "device 4"), Asked("forward", 2, "device 5")},
               {}},
              {"device 4", "", false, {{"all-reduce", WaitUnit::kNone, 0, "device 5"}}, {}},
              {"device 4", "", true, {}, {}},
              {"device 5", "", false, {}, {}}}) ==
      WaitRoot{"lock waits for the forward of microbatch 2 from device 5, which does not owe it: a "
               "message between them is lost",
               {"device 5", "lock"}});
}

TEST_CASE("the root says where its microbatch is in its step", "[actors]") {
  const auto place = [](const Wait& wait) {
    return " (step 2 mb " + std::to_string(wait.number - 4) + ")";
  };
  CHECK(RootOf({{"a", "", false, {Asked("gradient", 6, "b")}, {}}}, place).text ==
        "a waits for the gradient of microbatch 6 from b (step 2 mb 2)");
}

TEST_CASE("a job has moved if anybody waits for something else", "[actors]") {
  const ActorWaits a{"a", "", false, {Asked("gradient", 2, "b"), Asked("gradient", 3, "b")}, {}};
  const ActorWaits b{"b", "", false, {Expected("activation", 4, "a")}, {{"a", 102}}};
  ActorWaits turned = a;
  std::swap(turned.waits[0], turned.waits[1]);
  CHECK(SameWaits({a, b}, {b, turned}));
  CHECK_FALSE(SameWaits({a, b}, {a}));
  ActorWaits other = b;
  other.waits[0].number = 5;
  CHECK_FALSE(SameWaits({a, b}, {a, other}));
  other = b;
  other.owes.clear();
  CHECK_FALSE(SameWaits({a, b}, {a, other}));
  other = b;
  other.busy = true;
  CHECK_FALSE(SameWaits({a, b}, {a, other}));
}

TEST_CASE("a wait lasts if both lists hold it", "[actors]") {
  const ActorWaits a{"a", "", false, {Asked("gradient", 2, "b"), Asked("gradient", 3, "b")}, {}};
  const ActorWaits b{"b", "", false, {}, {{"a", 103}}};
  ActorWaits later = a;
  later.waits = {Asked("gradient", 3, "b"), Asked("gradient", 4, "b")};
  // The answer to request 103 is on its way: `b` no longer owes it, and `a` has not got it.
  const auto lasting = LastingWaits({a, b}, {{"b", "", false, {}, {{"a", 104}}}, later});
  REQUIRE(lasting.size() == 2);
  CHECK(lasting[0].waits == std::vector<Wait>{Asked("gradient", 3, "b")});
  CHECK_THAT(RootOf(lasting).text, !Catch::Contains("lost"));
  // Lost in both lists.
  CHECK_THAT(
      RootOf(LastingWaits({a, {"b", "", false, {}, {}}}, {later, {"b", "", false, {}, {}}})).text,
      Catch::Contains("microbatch 3 from b, which does not owe it: a message between"));
  // A device that was in a handler in one of the lists.
  const auto busy = LastingWaits({a, {"b", "", true, {}, {}}}, {later, {"b", "", false, {}, {}}});
  CHECK_THAT(RootOf(busy).text, Catch::Contains("b, which is busy"));
  CHECK(LastingWaits({b}, {a})[0].waits.empty());
  // `b` waits for one thing after the other: it makes progress, and may owe anything.
  const ActorWaits c{"b", "", false, {Expected("activation", 4, "a")}, {}};
  const ActorWaits d{"b", "", false, {Expected("activation", 5, "a")}, {}};
  CHECK_THAT(RootOf(LastingWaits({a, c}, {later, d})).text, Catch::Contains("b, which is busy"));
}

TEST_CASE("a stall without a cause is reported as such", "[actors]") {
  const WaitRoot unknown{"cause unknown: no actor reported a wait", {}};
  CHECK(RootOf({}) == unknown);
  CHECK(RootOf({{"a", "", false, {}, {}}}) == unknown);
}

}  // namespace troupe
