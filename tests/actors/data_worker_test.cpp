// One data worker alone: the test plays the dispatcher.
#include "actors/data_worker.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

#include "tests/actors/probes.hpp"

namespace troupe {
namespace {

/// Row 10 * p + i of it fails in phase p; a sample is the number of its row.
class FailingSource : public InputSource {
 public:
  std::shared_ptr<const Inputs> Assemble(const FeedUnit&, const std::vector<Buffer>&) override {
    throw std::logic_error("a worker assembles nothing");
  }
  RoundCounts Count(const Round&) override { return {}; }
  std::unique_ptr<SampleWork> Begin(const SampleTicket& ticket) const override {
    struct Work : SampleWork {
      explicit Work(std::int64_t number) : row(number) {}
      void In(DataPhase phase) const {
        if (row / 10 == static_cast<std::int64_t>(phase)) {
          throw std::runtime_error(std::string("no ") + ToString(phase));
        }
      }
      void Read() override { In(DataPhase::kRead); }
      void Tokenize() override { In(DataPhase::kTokenize); }
      Buffer Decode() override {
        In(DataPhase::kDecode);
        return RowsOf({static_cast<double>(row)});
      }
      std::int64_t row;
    };
    return std::make_unique<Work>(ticket.row);
  }
};

}  // namespace

TEST_CASE_METHOD(ActorFixture, "a worker answers each ticket, whichever phase fails",
                 "[actors][dispatcher]") {
  const auto worker =
      Spawn(RunDataWorker, DataWorkerConfig{.source = std::make_shared<FailingSource>()});
  std::vector<std::shared_ptr<Answered<SamplePrepared>>> answers;
  // All are in its mailbox before it begins.
  for (const std::int64_t row : {30, 1, 31, 12, 23, 32}) {
    answers.push_back(Post<SamplePrepared>(worker, PrepareSample{7, {.row = row}}));
  }
  Deliver();
  const auto row = [&](std::size_t i) {
    const SamplePrepared& prepared = answers[i]->answers.at(0);
    CHECK(prepared.microbatch == 7);
    CHECK(prepared.phase_ns.size() == kNumDataPhases);
    return ValuesOf(prepared.sample).at(0);
  };
  CHECK(row(0) == 30);
  CHECK(answers[1]->errors == std::vector<std::string>{"no read"});
  CHECK(row(2) == 31);
  CHECK(answers[3]->errors == std::vector<std::string>{"no tokenize"});
  CHECK(answers[4]->errors == std::vector<std::string>{"no decode"});
  CHECK(row(5) == 32);
}

}  // namespace troupe
