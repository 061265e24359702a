// What the watchdog makes of actors whose thread no longer comes back to their mailbox.
#include "actors/watchdog.hpp"

#include <thread>

#include <catch2/catch.hpp>

#include "trace/clock.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// A process with one actor, looked at often.
struct Watched {
  std::shared_ptr<Activity> activity = std::make_shared<Activity>();
  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
  std::unique_ptr<Watchdog> watchdog;

  explicit Watched(bool own_thread) {
    WatchdogConfig config;
    config.process = "n1";
    config.interval = 10ms;
    config.stuck_after = 100ms;
    config.actors = std::make_shared<ActivityTable>();
    config.actors->Add({"device 4", own_thread, activity});
    config.abort = abort;
    watchdog = std::make_unique<Watchdog>(std::move(config));
  }
  /// Whether it is raised within `time`.
  bool Raised(std::chrono::milliseconds time) const {
    const auto deadline = std::chrono::steady_clock::now() + time;
    while (!abort->raised() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(5ms);
    }
    return abort->raised();
  }
};

}  // namespace

TEST_CASE("an actor whose thread is frozen between messages is named", "[actors]") {
  const Watched frozen(true);
  frozen.activity->received = 12;
  frozen.activity->handled = 10;
  REQUIRE(frozen.Raised(10s));
  CHECK_THAT(frozen.abort->cause(),
             Catch::StartsWith("device 4 on n1 does not read its mailbox: 2 messages have waited "
                               "there for 0."));
  CHECK(frozen.abort->failure().actors == std::vector<std::string>{"device 4"});
}

TEST_CASE("an actor that reads, has ended, or shares its thread is not called frozen", "[actors]") {
  const Watched read(true);
  read.activity->received = read.activity->handled = 10;
  const Watched ended(true);
  ended.activity->received = 1;
  ended.activity->ended = true;
  const Watched pooled(false);
  pooled.activity->received = 1;
  const Watched slow(true);
  slow.activity->received = 1000;
  for (int i = 0; i < 30; ++i) {
    slow.activity->handled = slow.activity->handled + 1;
    std::this_thread::sleep_for(10ms);
  }
  CHECK_FALSE(slow.abort->raised());
  CHECK_FALSE(read.abort->raised());
  CHECK_FALSE(ended.abort->raised());
  CHECK_FALSE(pooled.abort->raised());
}

}  // namespace troupe
