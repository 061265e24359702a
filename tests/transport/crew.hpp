// Runs one thread per member of a local group, with a bound on time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "transport/communicator.hpp"

namespace troupe::testing {

/// Raises the signal unless destroyed in time, so that a hang becomes a failure.
class Watchdog {
 public:
  explicit Watchdog(std::shared_ptr<AbortSignal> abort)
      : thread_([this, abort = std::move(abort)] {
          std::unique_lock lock(mutex_);
          if (!done_changed_.wait_for(lock, std::chrono::seconds(20), [this] { return done_; }))
            abort->Raise("the test took longer than 20 s");
        }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    done_changed_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  std::thread thread_;
};

/// How a member ended: the kind and text of what it threw, or "ok".
inline std::string OutcomeOf(const std::function<void()>& body) {
  try {
    body();
    return "ok";
  } catch (const Aborted& error) {
    return std::string("aborted: ") + error.what();
  } catch (const std::invalid_argument& error) {
    return std::string("invalid argument: ") + error.what();
  } catch (const std::logic_error& error) {
    return std::string("logic error: ") + error.what();
  } catch (const std::exception& error) {
    return std::string("unexpected: ") + error.what();
  }
}

/// Runs `body` once per member of a new group of `size`, each on a thread of its own that destroys
/// its communicator at the end. Result[i] is the outcome of member i.
inline std::vector<std::string> RunGroup(
    int size, const std::function<void(Communicator&)>& body,
    const std::shared_ptr<AbortSignal>& abort = std::make_shared<AbortSignal>()) {
  const Watchdog watchdog(abort);
  auto members = MakeLocalGroup(size, abort);
  std::vector<std::string> outcomes(members.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < members.size(); ++i)
    threads.emplace_back([&outcomes, &body, i, member = std::move(members[i])]() mutable {
      outcomes[i] = OutcomeOf([&] { body(*member); });
      member.reset();
    });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

/// What RunGroup returns when every member ended the same way.
inline std::vector<std::string> All(int size, const std::string& outcome) {
  return std::vector<std::string>(static_cast<std::size_t>(size), outcome);
}

/// A value that no other (member, element) of a test has nearby, small enough to be exact.
inline std::int64_t ValueOf(int member, std::int64_t element) {
  return (element * 8 + member) % 4099 + 5000 * member - 7 * (element % 3);
}

}  // namespace troupe::testing
