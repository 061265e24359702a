#include "layout/text.hpp"

#include <catch2/catch.hpp>

namespace troupe {

TEST_CASE("what is counted is one thing or several", "[layout]") {
  CHECK(Counted(0, "check") == "0 checks");
  CHECK(Counted(1, "check") == "1 check");
  CHECK(Counted(2, "check") == "2 checks");
}

TEST_CASE("choices and lists read as in a sentence", "[layout]") {
  CHECK(AnyOf({}).empty());
  CHECK(AnyOf({3}) == "3");
  CHECK(AnyOf({4, 2, 1}) == "1, 2 or 4");
  CHECK(Listed({}).empty());
  CHECK(Listed({"a"}) == "a");
  CHECK(Listed({"a", "b"}, " + ") == "a + b");
}

TEST_CASE("text is split at every separator, and empty parts are kept", "[layout]") {
  CHECK(Split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  CHECK(Split("a,", ',') == std::vector<std::string>{"a", ""});
  CHECK(Split("", ',') == std::vector<std::string>{""});
}

TEST_CASE("only ASCII letters have a lower case", "[layout]") {
  CHECK(InLowerCase("A-Z 1 \xc3\x84") == "a-z 1 \xc3\x84");
}

TEST_CASE("formatted text is cut where it is longer than any line", "[layout]") {
  CHECK(Formatted("%.1f of %d", 0.25, 4) == "0.2 of 4");
  const std::string longer(600, 'x');
  CHECK(Formatted("%s", longer.c_str()).size() == 511);
}

}  // namespace troupe
