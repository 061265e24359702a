#include "trace/analyze/messages.hpp"

#include <limits>

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"

namespace troupe {
namespace {

std::size_t Found(const MessageFilter& filter) {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  return FindMessages(index, Steps(index), filter).found;
}

TEST_CASE("messages are found by actor, step and type", "[trace]") {
  MessageFilter filter;
  CHECK(Found(filter) == 628);
  filter.type = "Slice";
  CHECK(Found(filter) == 12);
  filter.step = 2;
  CHECK(Found(filter) == 4);
  filter.actor = "source.0";
  CHECK(Found(filter) == 4);
  filter.actor = "language.s1";
  CHECK(Found(filter) == 0);
  // To the lock step, and to both devices.
  MessageFilter runs;
  runs.type = "RunForward";
  runs.step = 1;
  CHECK(Found(runs) == 3 * 4 + (1 + 2 + 2) * 4);
}

TEST_CASE("a limit says how many there were", "[trace]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  MessageFilter filter;
  filter.limit = 7;
  const FoundMessages found = FindMessages(index, Steps(index), filter);
  CHECK(found.table.rows.size() == 7);
  CHECK(found.found == 628);
}

TEST_CASE("names that nothing has are refused with those that there are", "[trace]") {
  MessageFilter actor;
  actor.actor = "stage audio";
  CHECK_THROWS_WITH(Found(actor), Catch::Contains("no actor is called \"stage audio\"; there are "
                                                  "device 0, device 1"));
  MessageFilter type;
  type.type = "Slise";
  CHECK_THROWS_WITH(Found(type), Catch::Contains("no message of type \"Slise\""));
}

TEST_CASE("tables are text, CSV and JSON of the same cells", "[trace]") {
  const Table table{{"name", "count"},
                    {{"a,\"b\"", 12}, {"c\n\xff", Cell::Null()}, {"d", Cell::Number("37.5%")}}};
  CHECK(ToText(table) == "name   count\na,\"b\"     12\nc?\xff\nd      37.5%\n");
  CHECK(ToCsv(table) == "name,count\n\"a,\"\"b\"\"\",12\n\"c\n\xff\",\nd,37.5%\n");
  CHECK(ToJson(table) ==
        "[\n{\"name\":\"a,\\\"b\\\"\",\"count\":12},\n{\"name\":\"c\\n\xEF\xBF\xBD\","
        "\"count\":null},\n{\"name\":\"d\",\"count\":\"37.5%\"}\n]\n");
}

TEST_CASE("durations have three digits or so, and their unit", "[trace]") {
  CHECK(Duration(0) == "0");
  CHECK(Duration(1'500) == "1.50 us");
  CHECK(Duration(2'270'000'000) == "2.27 s");
  CHECK(Duration(-37'000'000) == "-37.0 ms");
  CHECK(Millis(1'234'567) == "1.235");
}

}  // namespace
}  // namespace troupe
