// What a user does wrong before or in the data: one line that says where, and no hang.
#include <fstream>

#include <catch2/catch.hpp>

#include "tests/cli/run_folder.hpp"

namespace troupe {
namespace {

using Catch::Contains;
using Catch::StartsWith;

/// The run ended by itself with `exit_code` and one line on standard error.
std::string CauseOf(const Outcome& outcome, int exit_code) {
  INFO(outcome.out << outcome.err);
  REQUIRE(!outcome.timed_out);
  CHECK(outcome.exit_code == exit_code);
  const auto lines = LinesOf(outcome.err);
  REQUIRE(lines.size() == 1);
  return lines.front();
}

}  // namespace

TEST_CASE("an image that is missing stops a run before it starts and is named", "[cli]") {
  const RunFolder folder;
  folder.WriteRows("[" + RowText("images/none.png") + "]");
  CHECK(CauseOf(folder.Train(), 2) == (folder / "train.json") + ": row 0 (id \"a\"): " +
                                          (folder / "images/none.png") + ": no such file");
  CHECK(folder.Runs().empty());
}

TEST_CASE("an image that is cut short ends the run with its step, row and path", "[cli]") {
  const RunFolder folder;
  const std::string whole = BytesOf("data/shapes/images/train_0000.png");
  folder.WriteImage("cut.png", whole.substr(0, whole.size() / 2));
  const Outcome outcome = folder.Train();
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  const std::string cause = LinesOf(outcome.err).back();  // warnings come before it
  CHECK_THAT(cause, StartsWith("troupe: feed of vision dp"));
  CHECK_THAT(cause, Contains(" (step 1 mb "));
  CHECK_THAT(cause, Contains("): " + (folder / "train.json") + ": row 0 (id \"a\"): " +
                             (folder / "images/cut.png") + ": not a usable png: "));
}

TEST_CASE("an image that claims to be enormous is refused before it is decoded", "[cli]") {
  std::string bytes = BytesOf("data/shapes/images/train_0000.png");
  bytes.replace(16, 8, std::string("\x7f\xff\xff\xff\x7f\xff\xff\xff", 8));  // width and height
  const RunFolder folder;
  folder.WriteImage("hostile.png", bytes);
  CHECK_THAT(CauseOf(folder.Train(), 2), Contains("images/hostile.png: "));
}

TEST_CASE("a text file where an image should be is refused by name", "[cli]") {
  const RunFolder folder;
  folder.WriteImage("text.png", "this is not an image\n");
  CHECK_THAT(CauseOf(folder.Train(), 2),
             Contains("images/text.png: expected a jpeg, png, webp or gif, got a file "
                      "that begins like none of them"));
}

TEST_CASE("a bad image stops verify and inline and colocated runs as well", "[cli]") {
  const RunFolder folder;
  folder.WriteRows("[" + RowText("images/none.png") + "]");
  for (const char* config : {"configs/shapes_inline.toml", "configs/shapes_colocated.toml"}) {
    const auto outcome = RunTroupe(folder.Arguments("train", config));
    CHECK_THAT(CauseOf(outcome, 2), Contains("images/none.png: no such file"));
  }
  const auto verify = RunTroupe(folder.Arguments("verify", "configs/shapes.toml"));
  CHECK_THAT(CauseOf(verify, 2), Contains("images/none.png: no such file"));
}

TEST_CASE("images and placeholders that do not match stop a run before it starts", "[cli]") {
  const RunFolder folder;
  folder.WriteRows("[" + RowText("images/good.png") + ", " +
                   RowText("images/good.png", "<image><image>What?") + "]");
  CHECK(CauseOf(folder.Train(), 2) ==
        (folder / "train.json") +
            ": row 1 (id \"a\"): image: the number of files and of placeholders must be the same, "
            "got 1 in the field and 2 times \"<image>\" in the text");
  CHECK(folder.Runs().empty());
}

TEST_CASE("a data file that is missing or no JSON stops a run before it starts", "[cli]") {
  const RunFolder folder;
  folder.WriteRows("[{\"id\": \"a\",");
  CHECK_THAT(CauseOf(folder.Train(), 2),
             StartsWith((folder / "train.json") + ": parse error at line 1, column "));
  folder.WriteRows("[]");
  CHECK(CauseOf(folder.Train(), 2) ==
        (folder / "train.json") + ": expected at least one row, found none");
  const std::string none = folder / "none.json";
  CHECK(CauseOf(folder.Train({"data.train=" + none}), 2) ==
        "--set data.train=" + none + ": data.train: \"" + none + "\": no such file; looked for " +
            none);
  CHECK(folder.Runs().empty());
}

TEST_CASE("a tokenizer that is missing or something else stops a run before it starts", "[cli]") {
  const RunFolder folder;
  const std::string none = "sentencepiece:" + (folder / "none.model");
  CHECK(CauseOf(folder.Train({"data.tokenizer=" + none}), 2) ==
        "--set data.tokenizer=" + none + ": data.tokenizer: \"" + none +
            "\": no such file; looked for " + (folder / "none.model"));
  CHECK(CauseOf(folder.Train({"data.tokenizer=sentencepiece:" + (folder / "train.json")}), 2) ==
        (folder / "train.json") + ": expected a sentencepiece model, could not read it as one");
}

TEST_CASE("a list without a row that can be used is refused, and its faults are printable",
          "[cli]") {
  const RunFolder folder;
  folder.WriteRows("[" + RowText("images/\\u001b[31m\\n.png") + "]");
  const Outcome outcome = folder.Train({"data.on_error=skip"});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("/images/?[31m?.png: no such file\n"));
  CHECK(LinesOf(outcome.err).back() == (folder / "train.json") +
                                           ": expected a row without a fault, found none; "
                                           "`troupe data check` lists all");
  folder.WriteRows("[" + RowText("images/good.png") + "]");
  std::ofstream(folder / "none.json") << "[]";
  CHECK(CauseOf(folder.Train({"data.held_out=" + (folder / "none.json")}), 2) ==
        (folder / "none.json") + ": expected at least one row, found none");
}

TEST_CASE("a configuration that is missing, misspelt or impossible is refused", "[cli]") {
  const RunFolder folder;
  CHECK(CauseOf(RunTroupe({"train", "configs/none.toml"}), 2) == "configs/none.toml: no such file");
  CHECK(
      CauseOf(folder.Train({"modules.vision.hiden=3"}), 2) ==
      "--set modules.vision.hiden=3: modules.vision.hiden: unknown key; did you mean \"hidden\"?");
  CHECK(CauseOf(folder.Train({"cluster.ranks=9"}), 2) ==
        "--set cluster.ranks=9: cluster.ranks: no module uses rank 8, expected each of the 9 in "
        "the ranks of "
        "some module");
  const Outcome two = folder.Train({"modules.vision.layout.tp=3"});
  CHECK(two.exit_code == 2);
  REQUIRE(LinesOf(two.err).size() == 2);
  CHECK_THAT(two.err,
             Contains("expected a divisor of modules.vision.heads = 4, got 3") &&
                 Contains("tp 3 * dp 4 needs 12 ranks, but modules.vision.ranks = \"4-7\" are 4"));
  CHECK(folder.Runs().empty());
}

TEST_CASE("verify refuses modules that compute nothing", "[cli]") {
  CHECK_THAT(CauseOf(RunTroupe({"verify", "configs/synthetic_8stages.toml"}), 2),
             Contains("synthetic modules compute nothing to verify"));
}

}  // namespace troupe
