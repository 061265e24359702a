// Every broken file with exactly the messages it gets, and docs/config.md with what the loader
// knows. After a change that is meant, rewrite both and read the difference:
//   test_configs "[.regenerate]"        (from the root of the repository)
#include <fstream>

#include <catch2/catch.hpp>

#include "tests/configs/config_doc.hpp"

namespace troupe {

namespace fs = std::filesystem;

static fs::path GoldenOf(fs::path path) { return path.replace_extension(".txt"); }

TEST_CASE("every broken file is refused with exactly its message") {
  const auto files = BrokenFiles();
  CHECK(files.size() >= 60);
  for (const auto& path : files) {
    INFO(path);
    CHECK(MessagesOf(path) == TextOf(GoldenOf(path)));
    CHECK_FALSE(MessagesOf(path).empty());
  }
}

TEST_CASE("the file that the broken ones start from is right") {
  CHECK(MessagesOf("tests/configs/base.toml").empty());
}

TEST_CASE("docs/config.md says what the loader knows and what it answers") {
  const std::string page = TextOf("docs/config.md");
  CHECK((RefreshedPage(page) == page));
}

TEST_CASE("the messages and docs/config.md are rewritten", "[.regenerate]") {
  for (const auto& path : BrokenFiles()) std::ofstream(GoldenOf(path)) << MessagesOf(path);
  const std::string page = RefreshedPage(TextOf("docs/config.md"));
  std::ofstream("docs/config.md") << page;
}

}  // namespace troupe
