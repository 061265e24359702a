// The threads of a feed machine: they prepare the samples of the earliest microbatches first.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "cluster/poll_set.hpp"
#include "feed/message.hpp"
#include "modules/input_source.hpp"

namespace troupe {

/// Thread-safe.
class Preparation {
 public:
  struct Prepared {
    FeedSample header;
    Buffer sample;
  };
  struct Outcome {
    std::int64_t link = 0;  ///< that has asked
    std::variant<Prepared, FeedFailure> result;
  };

  /// Signals `wake_up` whenever there is an outcome. All must outlive this.
  Preparation(const InputSource& source, int threads, WakeUp& wake_up);
  /// Waits for the samples that are being prepared.
  ~Preparation();
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

  void Add(std::int64_t link, const FeedOrder& order);
  /// Drops what that link has asked for, but not what is being prepared.
  void Drop(std::int64_t link);
  std::deque<Outcome> TakeOutcomes();
  /// Drops all that has not begun. Returns whether nothing is being prepared.
  bool IsIdle();

 private:
  struct Task {
    std::int64_t link = 0;
    FeedOrder order;
    std::int64_t asked_ns = 0;
  };

  void Run();
  Outcome Do(const Task& task) const;

  const InputSource& source_;
  WakeUp& wake_up_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::map<std::pair<std::int64_t, std::int64_t>, Task> tasks_;  ///< by microbatch and arrival
  std::int64_t num_tasks_ = 0;                                   ///< so far
  std::deque<Outcome> outcomes_;
  int num_busy_ = 0;  ///< threads
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace troupe
