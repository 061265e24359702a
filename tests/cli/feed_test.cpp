// Runs with feed machines.
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

#include "cluster/socket.hpp"
#include "tests/cli/run_folder.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using Words = std::vector<std::string>;

class FeedRuns : public RunFolder {
 public:
  FeedRuns() {
    std::string rows;
    int i = 0;
    for (const auto& image : fs::directory_iterator("data/shapes/images")) {
      if (++i > 40) break;
      const std::string name = "images/" + std::to_string(i) + ".png";
      fs::copy(image.path(), *this / name);
      rows += (i == 1 ? "" : ",") + RowText(name, "<image>What is " + std::to_string(i) + "?");
    }
    WriteRows("[" + rows + "]");
    REQUIRE(RunTroupe({"key", *this / "run.key"}).exit_code == 0);
    REQUIRE(RunTroupe({"key", *this / "feed.key", "--feed-of", *this / "run.key"}).exit_code == 0);
  }

  Words At() const { return {"data.feed_address=" + address_, "data.workers=1"}; }
  std::future<Outcome> StartMachine(int number, const Words& more = {}) const {
    Words words = Arguments("feed", "configs/shapes.toml", At());
    const Words others = {"--node",     std::to_string(number) + "/3",
                          "--threads",  "1",
                          "--key-file", *this / "feed.key",
                          "--wait",     "30"};
    words.insert(words.end(), others.begin(), others.end());
    words.insert(words.end(), more.begin(), more.end());
    return std::async(std::launch::async, [words] { return RunTroupe(words); });
  }
  Outcome TrainWith(const Words& settings, const Words& more) const {
    Words words = Arguments("train", "configs/shapes.toml", settings);
    words.insert(words.end(), more.begin(), more.end());
    return RunTroupe(words);
  }
  /// Of the newest run.
  std::vector<std::pair<double, double>> Losses() const {
    std::ifstream metrics(*this / "runs/latest/metrics.jsonl");
    std::vector<std::pair<double, double>> losses;
    for (std::string line; std::getline(metrics, line);) {
      const auto step = nlohmann::json::parse(line);
      losses.emplace_back(step.at("loss"), step.at("gradient_norm"));
    }
    return losses;
  }

 private:
  /// Free a moment ago.
  const std::string address_ = ToString(Socket::Listen({"127.0.0.1", 0}).local_address());
};

}  // namespace

TEST_CASE_METHOD(FeedRuns, "a run with feed machines has the losses of one without", "[feed]") {
  REQUIRE(TrainWith({"data.workers=1"}, {}).exit_code == 0);
  const auto alone = Losses();
  REQUIRE(alone.size() == 3);
  for (const Words& more : {Words{}, Words{"--local", "2"}}) {
    auto first = StartMachine(0);
    auto second = StartMachine(1);
    Words words = {"--key-file", *this / "run.key"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome run = TrainWith(At(), words);
    CHECK(run.exit_code == 0);
    CHECK(Losses() == alone);
    for (auto* const machine : {&first, &second}) {
      const Outcome outcome = machine->get();
      CHECK(outcome.exit_code == 0);
      CHECK(outcome.out == "the job is done\n");
      CHECK_THAT(outcome.err, Contains("preparing samples for the job at 127.0.0.1"));
    }
  }
}

TEST_CASE_METHOD(FeedRuns, "a machine whose samples would differ is refused by the key", "[feed]") {
  auto other = StartMachine(0, {"--set", "data.prompt=plain"});
  auto missing = StartMachine(1, {"--set", "modules.vision.patch_size=16"});
  const Outcome run = TrainWith(At(), {"--key-file", *this / "run.key"});
  CHECK(run.exit_code == 0);
  const Outcome refused = other.get();
  CHECK(refused.exit_code == 4);
  CHECK_THAT(refused.err, Contains("data.prompt is plain, the job has auto"));
  CHECK(missing.get().exit_code == 4);
}

TEST_CASE_METHOD(FeedRuns, "a machine that lacks a file leaves the samples to the job", "[feed]") {
  // The same rows and sizes, so the same index; but the machine cannot read an image.
  const ScratchFolder copy;
  fs::copy(*this / "images", copy / "images", fs::copy_options::recursive);
  fs::copy(*this / "train.json", copy / "train.json");
  std::ofstream(copy / "images/7.png", std::ios::binary | std::ios::in).seekp(60).write("XXXX", 4);
  REQUIRE(TrainWith({"data.workers=1"}, {}).exit_code == 0);
  const auto alone = Losses();
  auto machine = StartMachine(0, {"--set", "data.train=" + (copy / "train.json")});
  const Outcome run = TrainWith(At(), {"--key-file", *this / "run.key"});
  CHECK(run.exit_code == 0);
  CHECK(Losses() == alone);
  const Outcome outcome = machine.get();
  CHECK((outcome.exit_code == 0 || outcome.exit_code == 4));
}

TEST_CASE_METHOD(FeedRuns, "a machine with other images of the same sizes is not used", "[feed]") {
  const ScratchFolder copy;
  fs::copy(*this / "images", copy / "images", fs::copy_options::recursive);
  fs::copy(*this / "train.json", copy / "train.json");
  for (int i = 1; i <= 20; ++i) {
    const std::string one = copy / ("images/" + std::to_string(i) + ".png");
    const std::string two = copy / ("images/" + std::to_string(41 - i) + ".png");
    fs::rename(one, copy / "images/swap");
    fs::rename(two, one);
    fs::rename(copy / "images/swap", two);
  }
  REQUIRE(TrainWith({"data.workers=1"}, {}).exit_code == 0);
  const auto alone = Losses();
  auto machine = StartMachine(0, {"--set", "data.train=" + (copy / "train.json")});
  Words slow = At();  // so that the machine comes before the end
  slow.push_back("run.steps=300");
  const Outcome run = TrainWith(slow, {"--key-file", *this / "run.key"});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.err + run.out,
             Contains("is not used: its sample differs from the one prepared here ("));
  const Outcome outcome = machine.get();
  CHECK(outcome.exit_code == 4);
  CHECK_THAT(outcome.err, Contains("compare its copy of the files"));
  const auto losses = Losses();
  CHECK(std::equal(alone.begin(), alone.end(), losses.begin()));
}

TEST_CASE_METHOD(FeedRuns, "what feed needs is said before anything starts", "[feed]") {
  const auto feed = [&](const Words& more) {
    Words words = {"feed", "configs/shapes.toml"};
    words.insert(words.end(), more.begin(), more.end());
    return RunTroupe(words);
  };
  const Outcome nowhere = feed({});
  CHECK(nowhere.exit_code == 2);
  CHECK_THAT(nowhere.err, Contains("data.feed_address is not set"));
  const Words at = {"--set", "data.feed_address=127.0.0.1:1"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), at.begin(), at.end());
    return feed(more);
  };
  CHECK_THAT(with({}).err, Contains("troupe key FILE --feed-of RUN_KEY"));
  CHECK(with({"--key-file", *this / "none.key"}).exit_code == 2);
  const Outcome node = with({"--key-file", *this / "feed.key", "--node", "3/3"});
  CHECK(node.exit_code == 2);
  CHECK_THAT(node.err, Contains("--node: expected I/N"));
  const Outcome late = with({"--key-file", *this / "feed.key", "--wait", "1"});
  CHECK(late.exit_code == 4);
  CHECK_THAT(late.err, Contains("has not come within 1 s"));
  CHECK(feed({"--set", "data.feed_address=host"}).exit_code == 2);
  // Without a key no machine can connect.
  const Outcome alone = TrainWith({"data.feed_address=127.0.0.1:1"}, {});
  CHECK(alone.exit_code == 0);
  CHECK_THAT(alone.err, Contains("data.feed_address has no effect without --key-file"));
}

}  // namespace troupe
