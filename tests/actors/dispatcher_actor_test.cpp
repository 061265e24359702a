// One dispatcher alone: the test plays the feeds and the workers.
#include "actors/dispatcher_actor.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/actors/fake_machine.hpp"
#include "tests/actors/probes.hpp"

namespace troupe {
namespace {

using Rows = std::vector<std::int64_t>;
using Outcome = std::shared_ptr<Answered<UnitPrepared>>;

class DispatcherFixture : public ActorFixture {
 public:
  DispatcherFixture() {
    config.name = "dispatcher of n0";
    config.process = "n0";
    config.most_bytes = 1000;
    config.abort = abort;
  }
  void Open(std::size_t num_workers) {
    for (std::size_t i = 0; i < num_workers; ++i) {
      workers.push_back(&AddProbe("worker " + std::to_string(i)));
      config.workers.push_back(workers.back()->As<SampleWorker>());
    }
    dispatcher = Spawn(RunDispatcher, config);
  }
  /// A feed machine comes. Returns its number among the workers.
  std::size_t Join(const std::string& name, int credits) {
    workers.push_back(&AddProbe(name));
    machines.push_back(std::make_shared<FakeMachine>(name, credits));
    Send(dispatcher, MachineJoined{workers.back()->actor(), machines.back()});
    return workers.size() - 1;
  }
  void Lose(std::size_t worker) {
    Give<PrepareSample>(*workers[worker], caf::make_error(caf::sec::request_receiver_down));
  }
  /// Feed `feed` asks for the samples of `rows`, of `bytes` each.
  Outcome Order(std::size_t feed, std::int64_t unit, const Rows& rows, std::int64_t bytes = 1,
                std::optional<std::int64_t> microbatch = {}) {
    PrepareUnit ask{.number = unit, .microbatch = microbatch.value_or(unit), .samples = {}};
    for (const std::int64_t row : rows) {
      ask.samples.push_back({.row = row, .source = row >= 100 ? 1 : 0, .bytes = bytes});
    }
    auto outcome = std::make_shared<Answered<UnitPrepared>>();
    As(feed, [=, to = dispatcher](caf::event_based_actor* self) {
      self->request(to, caf::infinite, ask)
          .then([=](const UnitPrepared& answer) { outcome->answers.push_back(answer); },
                [=](const caf::error& error) { outcome->errors.push_back(FailureOf(error).text); });
    });
    return outcome;
  }
  void Use(std::size_t feed, std::int64_t unit) {
    As(feed,
       [=, to = dispatcher](caf::event_based_actor* self) { self->send(to, SamplesUsed{unit}); });
  }
  /// A worker answers its ticket with the number of the row.
  void Prepare(std::size_t worker, const std::vector<std::int64_t>& phase_ns = {}) {
    const auto asked = workers[worker]->Oldest<PrepareSample>();
    const auto row = static_cast<double>(asked.sample.row);
    Give<PrepareSample>(*workers[worker],
                        SamplePrepared{asked.microbatch, RowsOf({row}), phase_ns});
  }
  Rows GivenTo(std::size_t worker) const {
    Rows rows;
    for (const auto& ask : workers[worker]->Received<PrepareSample>()) {
      rows.push_back(ask.sample.row);
    }
    return rows;
  }
  static std::vector<double> RowsIn(const Outcome& outcome) {
    std::vector<double> rows;
    for (const Buffer& sample : outcome->answers.at(0).samples) {
      rows.push_back(ValuesOf(sample).at(0));
    }
    return rows;
  }

  DispatcherConfig config;
  std::vector<Probe*> workers;
  std::vector<std::shared_ptr<FakeMachine>> machines;
  Dispatcher dispatcher;

 private:
  void As(std::size_t feed, std::function<void(caf::event_based_actor*)> run) {
    while (feeds_.size() <= feed) {
      feeds_.push_back(&AddProbe("feed " + std::to_string(feeds_.size())));
    }
    caf::anon_send(feeds_[feed]->actor(), ProbeCall{std::move(run)});
    Deliver();
  }
  std::vector<Probe*> feeds_;
};

}  // namespace

TEST_CASE_METHOD(DispatcherFixture, "samples come back in the order of their unit",
                 "[actors][dispatcher]") {
  Open(3);
  const Outcome unit = Order(0, 7, {40, 41, 42, 43});
  CHECK(GivenTo(0) == Rows{40});
  CHECK(GivenTo(1) == Rows{41});
  CHECK(GivenTo(2) == Rows{42});
  Prepare(2);  // the one that is free gets the next
  CHECK(GivenTo(2) == Rows{42, 43});
  Prepare(2);
  Prepare(1);
  CHECK(unit->pending());
  Prepare(0);
  REQUIRE(unit->answers.size() == 1);
  CHECK(unit->answers[0].number == 7);
  CHECK(RowsIn(unit) == std::vector<double>{40, 41, 42, 43});
}

TEST_CASE_METHOD(DispatcherFixture, "a slow worker is passed by", "[actors][dispatcher]") {
  Open(2);
  const Outcome slow = Order(0, 0, {1});
  std::vector<Outcome> others;
  for (std::int64_t unit = 1; unit < 20; ++unit) others.push_back(Order(0, unit, {10 + unit}));
  for (std::size_t i = 0; i < others.size(); ++i) Prepare(1);
  for (const Outcome& other : others) CHECK_FALSE(other->pending());
  CHECK(slow->pending());
  CHECK(GivenTo(0) == Rows{1});
  Prepare(0);
  CHECK(RowsIn(slow) == std::vector<double>{1});
}

TEST_CASE_METHOD(DispatcherFixture, "samples of earlier microbatches come first",
                 "[actors][dispatcher]") {
  Open(1);
  Order(0, 0, {10});
  Order(0, 1, {11, 12});
  Order(0, 2, {13});
  Order(1, 0, {20});
  Order(1, 1, {21});
  Order(1, 2, {23}, 1, /*microbatch=*/4);
  Order(0, 3, {14});
  for (int i = 0; i < 7; ++i) Prepare(0);
  CHECK(GivenTo(0) == Rows{10, 20, 11, 12, 21, 13, 14, 23});
}

TEST_CASE_METHOD(DispatcherFixture, "what is prepared ahead takes no more memory than stated",
                 "[actors][dispatcher]") {
  Open(8);
  Order(0, 0, {1}, 400);
  Order(0, 1, {2, 3}, 400);
  Order(1, 0, {4}, 500);
  Order(1, 1, {5}, 50);
  // The next unit of each feed, and then what fits: 400 + 400 + 500, and nothing of 50 more.
  const auto given = [&] {
    std::multiset<std::int64_t> rows;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      for (const std::int64_t row : GivenTo(i)) rows.insert(row);
    }
    return rows;
  };
  CHECK(given() == std::multiset<std::int64_t>{1, 2, 4});
  for (std::size_t i = 0; i < 3; ++i) Prepare(i);
  CHECK(given().size() == 3);  // prepared samples take memory until they are used
  Use(1, 0);
  CHECK(given() == std::multiset<std::int64_t>{1, 2, 4, 5});  // the next of feed 1
  Use(0, 0);
  CHECK(given() == std::multiset<std::int64_t>{1, 2, 3, 4, 5});
}

TEST_CASE_METHOD(DispatcherFixture, "a unit larger than the memory is prepared if it is the next",
                 "[actors][dispatcher]") {
  Open(2);
  const Outcome unit = Order(0, 0, {1, 2}, 5000);
  Order(0, 1, {3}, 1);
  Prepare(0);
  Prepare(1);
  CHECK(RowsIn(unit) == std::vector<double>{1, 2});
  CHECK(GivenTo(0) == Rows{1});
  Use(0, 0);
  CHECK(GivenTo(0) == Rows{1, 3});
}

TEST_CASE_METHOD(DispatcherFixture,
                 "a unit fails with its first bad sample, in the order of its tickets",
                 "[actors][dispatcher]") {
  Open(3);
  const Outcome unit = Order(0, 0, {1, 2, 3, 4, 5});
  const Outcome next = Order(0, 1, {6});
  Refuse<PrepareSample>(*workers[2], "row 3 is bad");
  CHECK(GivenTo(2) == Rows{3, 6});  // what can no more change the outcome is not prepared
  Refuse<PrepareSample>(*workers[1], "row 2 is bad");
  CHECK(unit->pending());
  Prepare(0);
  CHECK(unit->errors == std::vector<std::string>{"row 2 is bad"});
  Prepare(2);
  CHECK(RowsIn(next) == std::vector<double>{6});
  CHECK_FALSE(abort->raised());
}

TEST_CASE_METHOD(DispatcherFixture, "a unit says what took longest of its preparation",
                 "[actors][dispatcher]") {
  Open(2);
  const Outcome unit = Order(0, 0, {1, 100, 101});
  Prepare(1, {10, 2, 45});
  Prepare(1, {10, 3, 45});
  Prepare(0, {50, 1, 80});
  REQUIRE(unit->answers.size() == 1);
  CHECK(unit->answers[0].delay ==
        DataDelay{.source = 1, .phase = DataPhase::kDecode, .process = "n0", .ns = 90});
}

TEST_CASE_METHOD(DispatcherFixture, "the ticket of a worker that is gone goes to another",
                 "[actors][dispatcher]") {
  Open(3);
  const Outcome unit = Order(0, 0, {1, 2, 3, 4}, 300);  // together more than may be prepared ahead
  const Outcome later = Order(0, 1, {5}, 300);
  Lose(1);
  CHECK(GivenTo(1) == Rows{2});  // and never more
  Prepare(0);
  CHECK(GivenTo(0) == Rows{1, 2});
  Lose(0);
  CHECK_FALSE(abort->raised());
  for (int i = 0; i < 3; ++i) Prepare(2);
  CHECK(GivenTo(2) == Rows{3, 2, 4});
  CHECK(RowsIn(unit) == std::vector<double>{1, 2, 3, 4});
  Use(0, 0);
  CHECK(GivenTo(2) == Rows{3, 2, 4, 5});
  Lose(2);  // the last
  CHECK(later->errors.size() == 1);
}

TEST_CASE_METHOD(DispatcherFixture, "machines come first, each with as many samples as its credits",
                 "[actors][dispatcher]") {
  Open(1);
  const std::size_t f0 = Join("f0", 2);
  const Outcome unit = Order(0, 0, {1, 2, 3, 4});
  CHECK(GivenTo(f0) == Rows{1, 2});
  CHECK(GivenTo(0) == Rows{3});
  Prepare(f0, {10, 2, 45, 7});
  CHECK(GivenTo(f0) == Rows{1, 2, 4});
  Prepare(f0);
  Prepare(f0, {0, 0, 0, 90});
  Prepare(0, {50, 0, 0});
  CHECK(RowsIn(unit) == std::vector<double>{1, 2, 3, 4});
  CHECK(unit->answers[0].delay ==
        DataDelay{.source = 0, .phase = DataPhase::kTransfer, .process = "f0", .ns = 97});
}

TEST_CASE_METHOD(DispatcherFixture, "all that a lost machine was asked for goes to others",
                 "[actors][dispatcher]") {
  Open(1);
  const std::size_t f0 = Join("f0", 3);
  const Outcome unit = Order(0, 0, {1, 2, 3, 4});
  CHECK(GivenTo(f0) == Rows{1, 2, 3});
  Prepare(f0);
  CHECK(GivenTo(0) == Rows{4});
  for (int i = 0; i < 2; ++i) Lose(f0);
  CHECK_FALSE(abort->raised());
  const std::size_t f1 = Join("f1", 1);
  CHECK(GivenTo(f1) == Rows{2});
  Prepare(0);
  CHECK(GivenTo(0) == Rows{4, 3});
  Prepare(0);
  Prepare(f1);
  CHECK(RowsIn(unit) == std::vector<double>{1, 2, 3, 4});
  Use(0, 0);
  Order(0, 1, {5});
  CHECK(GivenTo(f0).size() == 3);
  CHECK(GivenTo(f1) == Rows{2, 5});
}

TEST_CASE_METHOD(DispatcherFixture, "a sample with replaced files is prepared by the process",
                 "[actors][dispatcher]") {
  Open(1);
  const std::size_t f0 = Join("f0", 1);
  const std::size_t f1 = Join("f1", 1);
  const Outcome first = Order(0, 0, {1, 2, 3});
  Give<PrepareSample>(*workers[f0], SamplePrepared{0, {}, {}, /*may_use=*/false});
  CHECK(GivenTo(f0) == Rows{1});  // no machine gets it again
  CHECK(GivenTo(f1) == Rows{2});
  CHECK(GivenTo(0) == Rows{3});
  Prepare(0);
  CHECK(GivenTo(0) == Rows{3, 1});
  Prepare(0);
  Prepare(f1);
  CHECK(RowsIn(first) == std::vector<double>{1, 2, 3});
}

TEST_CASE_METHOD(DispatcherFixture, "a sample of a late machine is prepared by another, too",
                 "[actors][dispatcher]") {
  config.patience = std::chrono::milliseconds(20);
  Open(1);
  const std::size_t f0 = Join("f0", 2);
  const Outcome unit = Order(0, 0, {1, 2});
  const std::size_t f1 = Join("f1", 1);  // it may wait for the same disk
  const auto look = [&] { Send(dispatcher, LookForLate{}); };
  const auto wait = [&] { std::this_thread::sleep_for(config.patience); };
  look();
  CHECK(GivenTo(0).empty());
  wait();
  look();
  CHECK(GivenTo(0) == Rows{1});
  look();
  CHECK(GivenTo(0) == Rows{1});
  Prepare(0);
  CHECK(GivenTo(0) == Rows{1, 2});
  CHECK(GivenTo(f1).empty());
  // The machine is faster with the other one. The first answer of each counts.
  const auto answer = [&](double value) {
    Give<PrepareSample>(*workers[f0], SamplePrepared{0, RowsOf({value}), {}});
  };
  answer(100);
  CHECK(unit->pending());
  answer(2);
  CHECK(RowsIn(unit) == std::vector<double>{1, 2});
  Use(0, 0);
  Order(0, 1, {3, 4, 5});
  CHECK(GivenTo(f0) == Rows{1, 2, 3, 4});
  CHECK(GivenTo(f1) == Rows{5});
  Prepare(0);  // too late
  CHECK(GivenTo(0) == Rows{1, 2});
}

TEST_CASE_METHOD(DispatcherFixture, "a late machine gets no samples until it answers",
                 "[actors][dispatcher]") {
  config.patience = std::chrono::milliseconds(100);
  Open(1);
  const std::size_t f0 = Join("f0", 4);
  const Outcome first = Order(0, 0, {1, 2});
  CHECK(GivenTo(f0) == Rows{1, 2});
  std::this_thread::sleep_for(config.patience);
  const Outcome second = Order(0, 1, {3});  // just now: the machine is not late with this one
  Send(dispatcher, LookForLate{});
  CHECK(machines[0]->late == std::vector<bool>{true});
  for (const std::int64_t row : {1, 2, 3}) {
    CHECK(GivenTo(0).back() == row);
    Prepare(0);
  }
  CHECK(RowsIn(first) == std::vector<double>{1, 2});
  CHECK(RowsIn(second) == std::vector<double>{3});
  Order(0, 2, {4, 5});
  CHECK(GivenTo(f0) == Rows{1, 2, 3});
  CHECK(GivenTo(0) == Rows{1, 2, 3, 4});
  Prepare(f0);  // row 1, too late
  CHECK(machines[0]->late == std::vector<bool>{true, false});
  CHECK(GivenTo(f0) == Rows{1, 2, 3, 5});
}

TEST_CASE_METHOD(DispatcherFixture, "a machine that answers is not late with the rest at once",
                 "[actors][dispatcher]") {
  config.patience = std::chrono::milliseconds(100);
  Open(1);
  const std::size_t f0 = Join("f0", 4);
  Order(0, 0, {1, 2, 3});
  std::this_thread::sleep_for(config.patience);
  Send(dispatcher, LookForLate{});
  CHECK(GivenTo(0) == Rows{1});
  Prepare(f0);
  Order(0, 1, {4});
  CHECK(machines[0]->late == std::vector<bool>{true, false});
  CHECK(GivenTo(f0) == Rows{1, 2, 3, 4});
  Prepare(0);  // rows 2 and 3 are overdue, whatever the machine does
  Prepare(0);
  CHECK(GivenTo(0) == Rows{1, 2, 3});
}

TEST_CASE_METHOD(DispatcherFixture, "answers that come too late make the job more patient",
                 "[actors][dispatcher]") {
  config.patience = std::chrono::milliseconds(50);
  Open(1);
  const std::size_t f0 = Join("f0", 1);
  Order(0, 0, {1});
  std::this_thread::sleep_for(3 * config.patience);
  Send(dispatcher, LookForLate{});
  Prepare(0);
  Prepare(f0);  // after 150 ms: from now on a machine is late after 500 ms
  Order(0, 1, {2});
  CHECK(GivenTo(f0) == Rows{1, 2});
  std::this_thread::sleep_for(config.patience);
  Send(dispatcher, LookForLate{});
  CHECK(GivenTo(0) == Rows{1});
  CHECK(machines[0]->late == std::vector<bool>{true, false});
}

TEST_CASE_METHOD(DispatcherFixture, "a late machine that is lost leaves its sample to the other",
                 "[actors][dispatcher]") {
  config.patience = std::chrono::milliseconds(20);
  Open(1);
  const std::size_t f0 = Join("f0", 1);
  const Outcome unit = Order(0, 0, {1});
  std::this_thread::sleep_for(config.patience);
  Send(dispatcher, LookForLate{});
  CHECK(GivenTo(0) == Rows{1});
  Lose(f0);
  Prepare(0);
  CHECK(GivenTo(0) == Rows{1});
  CHECK(RowsIn(unit) == std::vector<double>{1});
}

TEST_CASE_METHOD(DispatcherFixture, "a unit without samples is there at once",
                 "[actors][dispatcher]") {
  Open(1);
  const Outcome empty = Order(0, 0, {});
  REQUIRE(empty->answers.size() == 1);
  CHECK(empty->answers[0].samples.empty());
  Use(0, 0);
  Order(0, 1, {1});
  CHECK(GivenTo(0) == Rows{1});
}

TEST_CASE_METHOD(DispatcherFixture, "the use of a unit that was not ordered ends the job",
                 "[actors][dispatcher]") {
  Open(1);
  Order(0, 0, {1});
  Use(1, 0);
  CHECK(abort->cause() == "dispatcher of n0: expected an order of unit 0, there is none");
}

}  // namespace troupe
