#include <catch2/catch.hpp>

#include "configs/toml_value.hpp"

namespace troupe {
namespace {

/// "LINE:COLUMN: TEXT" of the first fault, "" when there is none.
std::string FaultOf(std::string_view text) {
  const auto fault = FindTomlFault(text);
  if (!fault) return {};
  return std::to_string(fault->place.line) + ":" + std::to_string(fault->place.column) + ": " +
         fault->text;
}

bool Parses(const std::string& text) {
  return std::holds_alternative<TomlValue>(ParseToml(text, {"text"}));
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

const std::string kOutside = "expected printable ASCII outside \"strings\" and # comments, got ";
const std::string kFolded = "expected ASCII after a backslash in a multi-line string, got ";
const std::string kLongKey = "expected a key of a few parts, got one of more than 1000";

TEST_CASE("characters outside ASCII are found where TOML has no strings and comments") {
  CHECK(FaultOf("a = 1\nmodules\xd2\x89 = 1") == "2:8: " + kOutside + "U+0489");
  CHECK(FaultOf("a = caf\xc3\xa9") == "1:8: " + kOutside + "U+00E9");
  CHECK(FaultOf("a = 1\xc2\xa0") == "1:6: " + kOutside + "U+00A0");
  CHECK(FaultOf("a = 1 # \xc3\xa9\n\xf0\x9f\x90\xb6 = 1") == "2:1: " + kOutside + "U+1F436");
  CHECK(FaultOf("a = \"\xc3\xa9\" \xc3\xa9") == "1:9: " + kOutside + "U+00E9");
  CHECK(FaultOf("a = '\\' \xc3\xa9 '") == "1:9: " + kOutside + "U+00E9");
  CHECK(FaultOf("a = \"\"\"x\"\"\"\" \xc3\xa9") == "1:14: " + kOutside + "U+00E9");
  CHECK(FaultOf("a = \"\\\n\xc3\xa9") == "2:1: " + kOutside + "U+00E9");
}

TEST_CASE("control characters other than tab and line ends are found, too") {
  CHECK(FaultOf("a\t=\t1\r\n").empty());
  CHECK(FaultOf("a = \x07") == "1:5: " + kOutside + "U+0007");
  CHECK(FaultOf("a\x7f = 1") == "1:2: " + kOutside + "U+007F");
  CHECK(FaultOf(std::string_view("a\0", 2)) == "1:2: " + kOutside + "U+0000");
}

TEST_CASE("strings and comments hold any character") {
  for (const std::string text : {
           "a = '\xc3\xa9'",
           "a = \"\xc3\xa9 \\\" \xc3\xa9\"  # \xc3\xa9 \" '\n\"\xc3\xa9\" = 1",
           "a = '\xc3\xa9 \\'",
           "a = \"\\\\\" # \xc3\xa9",
           "a = \"\"\"\n\xc3\xa9 \" \xc3\xa9 \"\" \xc3\xa9\n\"\"\"",
           "a = \"\"\"\xc3\xa9 \\\"\"\" \xc3\xa9\"\"\"\"\"",
           "a = '''\n\xc3\xa9 ' \xc3\xa9 '' \\\xc3\xa9'''''",
           "a = \"\"\"\"\"\"  # \xc3\xa9",
           "a = \"\"\"x \\\n  y \\\\\xc3\xa9\"\"\"",
           "\xef\xbb\xbf"
           "a = 1",
       }) {
    INFO(text);
    CHECK(FaultOf(text).empty());
    CHECK(Parses(text));
  }
}

TEST_CASE("multi-line strings go on with ASCII after a backslash") {
  CHECK(FaultOf("a = \"\"\"\\\n  \xc3\xa9\"\"\"") == "2:3: " + kFolded + "U+00E9");
  CHECK(FaultOf("a = \"\"\"x\\ \t\r\n\n \xe2\x80\xaf\"\"\"") == "3:2: " + kFolded + "U+202F");
  CHECK(FaultOf("a = \"\"\"\\\xc3\xa9\"\"\"") == "1:9: " + kFolded + "U+00E9");
  CHECK(FaultOf("a = \"\"\"\\\n  e\xc3\xa9\"\"\"").empty());
}

TEST_CASE("bytes that are not UTF-8 are found everywhere") {
  CHECK(FaultOf("a = '\xff'") == "1:6: expected UTF-8, got the byte 0xFF");
  CHECK(FaultOf("# \x80") == "1:3: expected UTF-8, got the byte 0x80");
  CHECK(FaultOf("\xc3") == "1:1: expected UTF-8, got the byte 0xC3");
  CHECK(FaultOf("a = \"\xc0\xaf\"") == "1:6: expected UTF-8, got the byte 0xC0");    // overlong
  CHECK(FaultOf("a = '\xed\xa0\x80'") == "1:6: expected UTF-8, got the byte 0xED");  // surrogate
  CHECK(FaultOf("'\xf4\x90\x80\x80'") == "1:2: expected UTF-8, got the byte 0xF4");  // too large
  CHECK(FaultOf("'\xf0\x9f\x90\xb6\xf4\x8f\xbf\xbf\xed\x9f\xbf\xef\xbf\xbd'").empty());
}

TEST_CASE("a key has at most 1000 dots, its tables in braces included") {
  CHECK(FaultOf(Repeated("a.", 1000) + "a = 1").empty());
  CHECK(FaultOf("[b]\n" + Repeated("a.", 1001) + "a = 1") == "2:2002: " + kLongKey);
  CHECK(FaultOf("[" + Repeated("a . ", 1001) + "a]") == "1:4004: " + kLongKey);
  const std::string key = Repeated("a.", 600) + "a";
  CHECK(FaultOf(key + " = 1\n" + key + " = 1").empty());
  CHECK(FaultOf("b = [{" + key + " = 1},\n{" + key + " = 1}, {" + key + " = 1, b." + key + " = 1}]")
            .empty());
  CHECK(FaultOf(key + " = [\n{" + key + " = 1}]").ends_with(kLongKey));
  CHECK(FaultOf("a = [" + Repeated("0.5, ", 2000) + "0.5]").empty());
  CHECK(FaultOf("a = \"" + Repeated(".", 2000) + "\" # " + Repeated(".", 2000)).empty());
}

TEST_CASE("strings that do not end and stray brackets are the parser's to report") {
  for (const std::string text : {"a = \"x\nb = 1", "a = '''", "a = \"\\", "a = \"\"\"\\", "a = \"",
                                 "]]}} = 1", "[[[[", "a = \"\\\nb"}) {
    INFO(text);
    CHECK(FaultOf(text).empty());
    CHECK_FALSE(Parses(text));
  }
}

}  // namespace
}  // namespace troupe
