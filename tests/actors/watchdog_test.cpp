// The watchdog alone: the test sets what the actors of a process are doing.
#include "actors/watchdog.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <catch2/catch.hpp>

#include "messages/pipeline.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// A process with one actor. Times lie in the past, so that no test waits for them.
class WatchdogFixture {
 public:
  WatchdogFixture() {
    config.process = "n1";
    config.interval = 5ms;
    config.actors = std::make_shared<ActivityTable>();
    config.waits = std::make_shared<GroupWaits>();
    config.abort = abort;
    config.looking = [this] {
      if (at_look) at_look();
      Note(looks_);
    };
    subscription_ = abort->Subscribe([this](const Failure&) { Note(failures_); });
  }
  /// The watchdog looks for stalls, too.
  void CountReports() {
    config.stall_after = 0ns;
    config.stalled = [this](std::chrono::nanoseconds) { Note(reports_); };
  }
  void Watch(const std::string& name, bool own_thread) {
    config.actors->Add({name, own_thread, activity});
    watchdog_ = std::make_unique<Watchdog>(config);
  }
  /// Waits for so many more looks.
  void AwaitLooks(int number) {
    std::unique_lock lock(mutex_);
    const int last = looks_ + number + 1;  // the look that begins now ends with the next
    REQUIRE(changed_.wait_for(lock, 10s, [&] { return looks_ >= last; }));
  }
  int NumReports() {
    const std::lock_guard lock(mutex_);
    return reports_;
  }
  void AwaitReports(int number) {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, 10s, [&] { return reports_ >= number; }));
  }
  /// Waits until it ends the job.
  void AwaitFailure() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, 10s, [&] { return failures_ > 0; }));
  }
  /// One more of them, for those that wait for it.
  void Note(int& count) {
    const std::lock_guard lock(mutex_);
    ++count;
    changed_.notify_all();
  }
  static std::int64_t Ago(std::chrono::nanoseconds time) { return NowNs() - time.count(); }

  WatchdogConfig config;
  std::shared_ptr<Activity> activity = std::make_shared<Activity>();
  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
  std::function<void()> at_look;  ///< called on the watchdog's thread

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int looks_ = 0;
  int reports_ = 0;  ///< of a stall
  int failures_ = 0;
  std::shared_ptr<void> subscription_;
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace

TEST_CASE_METHOD(WatchdogFixture, "an actor whose thread is frozen between messages is named",
                 "[actors][watchdog]") {
  config.stuck_after = 0ns;
  activity->received = 12;
  activity->handled = 10;
  Watch("device 4", true);
  AwaitFailure();
  CHECK_THAT(abort->cause(),
             Catch::StartsWith("device 4 on n1 does not read its mailbox: 2 messages have waited "
                               "there for "));
  CHECK(abort->failure().kind == FailureKind::kStall);
  CHECK(abort->failure().actors == std::vector<std::string>{"device 4"});
}

TEST_CASE_METHOD(WatchdogFixture,
                 "an actor that reads, has ended, or shares its thread is not called frozen",
                 "[actors][watchdog]") {
  config.stuck_after = 0ns;
  bool own_thread = true;
  SECTION("it has read all") { activity->received = activity->handled = 10; }
  SECTION("it has ended") {
    activity->received = 1;
    activity->ended = true;
  }
  SECTION("it waits for a free thread") {
    activity->received = 1;
    own_thread = false;
  }
  SECTION("it reads slowly") {
    activity->received = 1000;
    at_look = [this] { ++activity->handled; };
  }
  Watch("device 4", own_thread);
  AwaitLooks(10);
  CHECK_FALSE(abort->raised());
}

TEST_CASE_METHOD(WatchdogFixture, "a handler that runs longer than it may is named by its message",
                 "[actors][watchdog]") {
  activity->busy_since_ns = Ago(60s);
  activity->message = &typeid(Activation);
  SECTION("of an actor that shares its thread") {
    Watch("stage language.s0 dp0", false);
    AwaitFailure();
    CHECK_THAT(abort->cause(), Catch::StartsWith("stage language.s0 dp0 on n1 is stuck: its "
                                                 "handler of Activation has run for 6"));
    CHECK(abort->failure().actors == std::vector<std::string>{"stage language.s0 dp0"});
  }
  SECTION("of a device, which may take as long as a pass") {
    Watch("device 4", true);
    AwaitLooks(3);
    CHECK_FALSE(abort->raised());
    activity->busy_since_ns = Ago(400s);
    AwaitFailure();
    CHECK_THAT(abort->cause(), Catch::StartsWith("device 4 on n1 is stuck: its handler"));
  }
  SECTION("of a device that has not made its programs") {
    activity->message = nullptr;
    activity->busy_since_ns = Ago(400s);
    Watch("device 4", true);
    AwaitFailure();
    CHECK_THAT(abort->cause(), Catch::StartsWith("device 4 on n1 is stuck: making its programs"));
  }
}

TEST_CASE_METHOD(WatchdogFixture, "a device whose queue does not move is named",
                 "[actors][watchdog]") {
  activity->queue_since_ns = Ago(200s);
  Watch("device 4", true);
  AwaitLooks(3);
  CHECK_FALSE(abort->raised());
  activity->queue_since_ns = Ago(400s);
  AwaitFailure();
  CHECK_THAT(abort->cause(), Catch::StartsWith("device 4 on n1 is stuck: the command at the head "
                                               "of its queue has run for 4"));
}

TEST_CASE_METHOD(
    WatchdogFixture,
    "a device that waits in a collective gets twice the time, for its peer to be named",
    "[actors][watchdog]") {
  ActorWaits waiting;
  waiting.who = "device 4";
  waiting.waits.push_back({.what = "all-reduce", .whom = "device 5"});
  const auto token = config.waits->Begin(waiting);
  activity->busy_since_ns = Ago(400s);
  Watch("device 4", true);
  AwaitLooks(3);
  CHECK_FALSE(abort->raised());  // the peer's own watchdog has as long again
  activity->busy_since_ns = Ago(700s);
  AwaitFailure();
  CHECK_THAT(abort->cause(), Catch::Contains("it waits for") && Catch::Contains("device 5"));
  CHECK(abort->failure().actors == std::vector<std::string>{"device 5", "device 4"});
  config.waits->End(token);
}

TEST_CASE_METHOD(WatchdogFixture, "a job in which nothing moves is reported once",
                 "[actors][watchdog]") {
  CountReports();
  activity->handled = activity->received = 5;
  SECTION("and again when it has moved in between") {
    config.interval = 100ms;  // a late look counts as a pause of the process itself
    Watch("stage language.s0 dp0", false);
    AwaitReports(1);
    AwaitLooks(2);
    CHECK(NumReports() == 1);
    ++activity->received;
    ++activity->handled;
    AwaitReports(2);
  }
  SECTION("also when the process itself pauses after the report") {
    const auto pauses = std::make_shared<std::atomic<bool>>(false);
    at_look = [pauses] {
      if (pauses->exchange(false)) std::this_thread::sleep_for(60ms);
    };
    Watch("stage language.s0 dp0", false);
    AwaitReports(1);
    *pauses = true;
    AwaitLooks(5);
    CHECK(NumReports() == 1);
  }
  SECTION("not while an actor is busy") {
    activity->busy_since_ns = Ago(1s);
    Watch("stage language.s0 dp0", false);
    AwaitLooks(5);
    CHECK(NumReports() == 0);
  }
  SECTION("not while another process is busy") {
    config.others = [] { return Vitals{0, true}; };
    Watch("stage language.s0 dp0", false);
    AwaitLooks(5);
    CHECK(NumReports() == 0);
  }
  SECTION("not while another process gets on") {
    config.others = [actions = std::uint64_t{0}]() mutable { return Vitals{++actions, false}; };
    Watch("stage language.s0 dp0", false);
    AwaitLooks(5);
    CHECK(NumReports() == 0);
  }
}

TEST_CASE("a device that waits in a collective is not busy", "[actors][watchdog]") {
  ActivityTable actors;
  const auto activity = std::make_shared<Activity>();
  activity->handled = 7;
  activity->busy_since_ns = NowNs();
  actors.Add({"device 4", true, activity});
  GroupWaits waits;
  CHECK(VitalsOf(actors, &waits).busy);
  CHECK(VitalsOf(actors, nullptr).busy);
  CHECK(VitalsOf(actors, &waits).actions == 7);
  ActorWaits waiting;
  waiting.who = "device 4";
  const auto token = waits.Begin(waiting);
  CHECK_FALSE(VitalsOf(actors, &waits).busy);
  waits.End(token);
}

}  // namespace troupe
