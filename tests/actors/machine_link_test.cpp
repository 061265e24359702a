// The link to one feed machine alone: the test plays the dispatcher and the machine.
#include "actors/machine_link.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

#include "tests/actors/fake_machine.hpp"
#include "tests/actors/probes.hpp"

namespace troupe {
namespace {

/// A sample is the number of its row and, if it was prepared here, 9.
class RowNumber : public SampleWork {
 public:
  RowNumber(const SampleTicket& ticket, int& num_prepared)
      : ticket_(ticket), num_prepared_(num_prepared) {}
  void Read() override {
    if (ticket_.row == 13) throw std::runtime_error("a bad row");
  }
  void Tokenize() override {}
  Buffer Decode() override {
    ++num_prepared_;
    return RowsOf({static_cast<double>(ticket_.row == 14 ? -14 : ticket_.row), 9});
  }

 private:
  SampleTicket ticket_;
  int& num_prepared_;
};

/// A negative number stands for a sample with replaced files.
class CheckingSource : public InputSource {
 public:
  std::unique_ptr<SampleWork> Begin(const SampleTicket& ticket) const override {
    return std::make_unique<RowNumber>(ticket, num_prepared);
  }
  mutable int num_prepared = 0;
  std::shared_ptr<const Inputs> Assemble(const FeedUnit&, const std::vector<Buffer>&) override {
    throw std::logic_error("a link assembles nothing");
  }
  RoundCounts Count(const Round&) override { return {}; }
  bool MayUse(const SampleTicket& ticket, const Buffer& sample) const override {
    const double row = ValuesOf(sample).at(0);
    if (row == static_cast<double>(ticket.row)) return true;
    if (row == -static_cast<double>(ticket.row)) return false;
    throw std::runtime_error("not that sample");
  }
};

class LinkFixture : public ActorFixture {
 public:
  ~LinkFixture() {
    machine->gone = nullptr;
    machine->prepared.clear();
  }
  std::shared_ptr<Answered<SamplePrepared>> Ask(std::int64_t row, std::int32_t of = 0,
                                                bool has_items = true) {
    return ActorFixture::Ask<SamplePrepared>(
        link, PrepareSample{7, {.row = row, .source = of, .has_items = has_items}});
  }
  /// The machine has prepared the sample that it was asked for as number `i`.
  void Prepare(std::size_t i, double row, double rest = 9) {
    machine->prepared.at(i)({RowsOf({row, rest}), {3, 4, 5}, 2});
    Deliver();
  }

  std::shared_ptr<FakeMachine> machine = std::make_shared<FakeMachine>();
  std::shared_ptr<CheckingSource> source = std::make_shared<CheckingSource>();
  MachineLink link = Spawn(RunMachineLink, MachineLinkConfig{source, machine});
};

}  // namespace

TEST_CASE_METHOD(LinkFixture, "a link answers with what its machine has prepared",
                 "[actors][dispatcher]") {
  const auto one = Ask(1);
  const auto two = Ask(2);
  CHECK(machine->asked == std::vector<std::pair<std::int64_t, std::int64_t>>{{7, 1}, {7, 2}});
  Prepare(1, 2);
  CHECK(one->pending());
  REQUIRE(two->answers.size() == 1);
  const SamplePrepared& prepared = two->answers[0];
  CHECK(prepared.microbatch == 7);
  CHECK(prepared.may_use);
  CHECK(ValuesOf(prepared.sample) == std::vector<double>{2, 9});
  REQUIRE(prepared.phase_ns.size() == kNumDataPhases);
  CHECK(std::vector(prepared.phase_ns.begin(), prepared.phase_ns.begin() + 3) ==
        std::vector<std::int64_t>{3, 4, 5});
  CHECK(prepared.phase_ns[static_cast<std::size_t>(DataPhase::kTransfer)] > 0);
  Prepare(0, -1);  // with replaced files
  REQUIRE(one->answers.size() == 1);
  CHECK_FALSE(one->answers[0].may_use);
}

TEST_CASE_METHOD(LinkFixture, "a machine that sends another sample is dismissed",
                 "[actors][dispatcher]") {
  const auto one = Ask(1);
  const auto two = Ask(2);
  Prepare(0, 5);
  CHECK(machine->dismissed == std::vector<std::string>{"not that sample"});
  CHECK(one->errors.size() == 1);
  CHECK(two->errors.size() == 1);
  CHECK(Ask(3)->errors.size() == 1);
}

TEST_CASE_METHOD(LinkFixture, "a link compares the first sample of a machine with its own",
                 "[actors][dispatcher]") {
  SECTION("one of each source is compared, with its images") {
    std::size_t number = 0;
    for (const std::int32_t of : {0, -1}) {
      for (const bool has_items : {false, true, true}) {
        const int before = source->num_prepared;
        const auto asked = Ask(1, of, has_items);
        Prepare(number++, 1);
        CHECK(asked->answers.size() == 1);
        CHECK(source->num_prepared - before == (has_items && number % 3 == 2 ? 1 : 0));
      }
    }
    CHECK(source->num_prepared == 2);
    CHECK(machine->dismissed.empty());
  }
  SECTION("a machine whose sample differs is dismissed") {
    const auto asked = Ask(1);
    Prepare(0, 1, 8);
    CHECK(asked->errors.size() == 1);
    CHECK(machine->dismissed ==
          std::vector<std::string>{"its sample differs from the one prepared here (row 1): compare "
                                   "its copy of the files"});
  }
  SECTION("one with files that are bad here is left to a worker, and the next is compared") {
    std::size_t number = 0;
    for (const int row : {13, 14}) {  // a bad row, and one with a replaced file
      const auto bad = Ask(row);
      Prepare(number++, row);
      REQUIRE(bad->answers.size() == 1);
      CHECK_FALSE(bad->answers[0].may_use);
    }
    Ask(2);
    Prepare(number, 2, 8);
    CHECK(source->num_prepared == 2);
    CHECK(machine->dismissed.size() == 1);
  }
}

TEST_CASE_METHOD(LinkFixture, "when its machine is gone, a link answers all requests and ends",
                 "[actors][dispatcher]") {
  const auto one = Ask(1);
  machine->gone();
  Deliver();
  CHECK(one->errors.size() == 1);
  CHECK(Ask(2)->errors.size() == 1);
  CHECK(machine->dismissed.empty());
}

}  // namespace troupe
