// Every broken file with exactly the messages it gets, and docs/config.md and docs/mistakes.md with
// what the loader knows. After a change that is meant, rewrite both and read the difference:
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

TEST_CASE("the docs say what the loader knows and what it answers") {
  for (const Page& page : Pages()) {
    INFO(page.path);
    const std::string text = TextOf(page.path);
    CHECK((page.refreshed(text) == text));
  }
}

TEST_CASE("the messages and their pages are rewritten", "[.regenerate]") {
  for (const auto& path : BrokenFiles()) std::ofstream(GoldenOf(path)) << MessagesOf(path);
  for (const Page& page : Pages()) {
    const std::string text = page.refreshed(TextOf(page.path));
    std::ofstream(page.path) << text;
  }
}

}  // namespace troupe
