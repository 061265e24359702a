#include "data/digest.hpp"

#include <catch2/catch.hpp>

#include "tests/data/scratch_folder.hpp"

namespace troupe {

TEST_CASE("the digest of data is that of the files' bytes, wherever they lie", "[data]") {
  const ScratchFolder folder;
  folder.Write("train.json", "test");
  folder.Write("model", std::string(3 << 20, 'x'));
  Config config;
  config.data.train = folder / "train.json";
  config.data.held_out = folder / "none.json";
  config.data.tokenizer = "sentencepiece:" + (folder / "model");
  const std::string lines = DataDigests(config);
  CHECK(lines.find("data.train (contents) = sha256 9f86d081884c7d65\n") == 0);  // of sha256sum
  CHECK(lines.find("held_out") == std::string::npos);
  CHECK(lines.find("data.tokenizer (contents) = sha256 ") != std::string::npos);
  folder.Write("train.json", "tesT");
  CHECK(DataDigests(config) != lines);
}

}  // namespace troupe
