// Answers processes that connect to process 0 after the job has met. A second process with the same
// number learns that it is a duplicate, instead of retrying an address where nothing listens.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "cluster/acceptor.hpp"
#include "cluster/join.hpp"
#include "cluster/join_channel.hpp"
#include "cluster/join_message.hpp"
#include "cluster/poll_set.hpp"

namespace troupe {

/// The answer to a second process with the number of `first`, which came from `first_from`: "n1 has
/// already joined (10.0.0.2, pid 42): two processes were started as n1".
Refusal DuplicateRefusal(const Hello& first, const std::string& first_from);
/// The line that process 0 prints about it.
std::string DuplicateLine(const Refusal& refusal, const Hello& second,
                          const std::string& second_from);

/// Runs on a separate thread until the deadline, Close or the destructor. Then nothing listens.
class Latecomers {
 public:
  /// Takes over the meeting's `acceptor`. With `lasting` it asks a process whose number is taken to
  /// come again; the process that has the number may have ended. `print` gets a line for each refused
  /// process, for each spare that comes and, at the end, the number of refused connections.
  Latecomers(Acceptor acceptor, Roster roster, Deadline until, bool lasting,
             std::function<void(const std::string& line)> print);
  ~Latecomers();
  Latecomers(const Latecomers&) = delete;
  Latecomers& operator=(const Latecomers&) = delete;

  /// Stops listening. Returns at once, from any thread. `why` says how the job has ended, and is sent
  /// to the spares. Its text is empty if the job goes on; then spares come again.
  void Close(const JoinProblem& why = {});

  /// Tells all processes that come from now on that the job is done. Returns when so many have come, or
  /// after `patience`.
  void TellDone(std::int64_t num_processes, std::chrono::milliseconds patience);

  /// Spares that wait now. Thread-safe.
  int spares() const { return spares_; }

 private:
  struct Visitor {
    JoinChannel channel;
    Deadline until;
    bool answered = false;
    bool is_spare = false;  ///< stays
  };

  void Run();
  void Round();
  void Answer(Visitor& visitor, const Hello& hello);
  /// Returns false if the job is not done.
  bool SendDone(Visitor& visitor);
  /// Tells the spares that the job has ended.
  void DismissSpares();

  Acceptor acceptor_;
  const Roster roster_;
  const Deadline until_;
  const bool lasting_;
  const std::function<void(const std::string& line)> print_;
  std::list<Visitor> visitors_;
  PollSet polls_;
  WakeUp wake_up_;
  std::atomic<bool> closing_{false};
  std::atomic<int> spares_{0};
  std::mutex mutex_;
  std::condition_variable told_;
  JoinProblem why_;            ///< under mutex_
  bool is_done_ = false;       ///< likewise
  std::int64_t num_told_ = 0;  ///< likewise
  std::thread thread_;         ///< last: it uses all of the above
};

}  // namespace troupe
