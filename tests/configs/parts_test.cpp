#include <catch2/catch.hpp>

#include "configs/key_value.hpp"
#include "configs/schema.hpp"
#include "configs/suggest.hpp"
#include "configs/toml_value.hpp"
#include "layout/text.hpp"

namespace troupe {

TEST_CASE("edit distance counts insertions, deletions, replacements and swaps") {
  CHECK(EditDistance("steps", "steps") == 0);
  CHECK(EditDistance("stpes", "steps") == 1);
  CHECK(EditDistance("step", "steps") == 1);
  CHECK(EditDistance("stepss", "steps") == 1);
  CHECK(EditDistance("staps", "steps") == 1);
  CHECK(EditDistance("", "abc") == 3);
  CHECK(EditDistance("gird", "grid") == 1);
  CHECK(EditDistance("kitten", "sitting") == 3);
}

TEST_CASE("the nearest word is found only when it is near") {
  const std::vector<std::string> words = {"ranks", "layout", "heads", "kv_heads"};
  CHECK(Nearest("rank", words) == "ranks");
  CHECK(Nearest("kvheads", words) == "kv_heads");
  CHECK(Nearest("temperature", words).empty());
  CHECK(Nearest(std::string(1000, 'x'), words).empty());
}

TEST_CASE("rank lists keep the order in which they are written") {
  const auto ranks = [](const std::string& text) {
    const auto parsed = ParseRanks(text);
    return std::holds_alternative<std::vector<int>>(parsed) ? std::get<std::vector<int>>(parsed)
                                                            : std::vector<int>();
  };
  CHECK(ranks("4-7") == std::vector{4, 5, 6, 7});
  CHECK(ranks("0-2,5") == std::vector{0, 1, 2, 5});
  CHECK(ranks(" 3 , 1 - 2 ") == std::vector{3, 1, 2});
  for (const char* bad : {"", "4-", "-4", "7-4", "1,,2", "1,", "a", "1.5", "0x1", "1 2", "65536",
                          "0-65535,1", "99999999999999999999"}) {
    INFO(bad);
    CHECK(ranks(bad).empty());
  }
}

TEST_CASE("rank lists print as the shortest text that reads back") {
  for (const auto& list :
       std::vector<std::vector<int>>{{4, 5, 6, 7}, {0, 1, 2, 5}, {3, 2, 1}, {9}}) {
    CHECK(std::get<std::vector<int>>(ParseRanks(RanksText(list))) == list);
  }
  CHECK(RanksText(std::vector{0, 1, 2, 5}) == "0-2,5");
  CHECK(RanksText(std::vector{3, 2, 1}) == "3,2,1");
}

TEST_CASE("numbers print as TOML floats that read back exactly") {
  for (const double value : {1.0, 0.1, 1e-8, 10'000.0, 2e-3, 1.0 / 3.0, 1e300}) {
    const std::string text = NumberText(value);
    INFO(text);
    CHECK(std::stod(text) == value);
    CHECK(text.find_first_of(".e") != std::string::npos);
  }
}

TEST_CASE("every key of the schema is described, stands in a known table and appears once") {
  for (const auto& key : Keys()) {
    INFO(key.table << "." << key.name);
    CHECK_FALSE(key.meaning.empty());
    CHECK(FindTable(key.table) != nullptr);
    KindSet kinds = 0;
    for (const auto& other : Keys()) {
      if (other.table != key.table || other.name != key.name) continue;
      CHECK((kinds & other.kinds) == 0);
      kinds |= other.kinds;
    }
    CHECK((key.type != ValueType::kWord || !key.words.empty()));
  }
}

}  // namespace troupe
