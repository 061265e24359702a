// Answers those that come to process 0 after the job has met: a second process with a number that
// is taken learns that it is too many, instead of trying an address where nothing listens.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cluster/acceptor.hpp"
#include "cluster/join.hpp"
#include "cluster/join_message.hpp"

namespace troupe {

/// What a second process as `first`, which came from `first_from`, is told:
/// "n1 is here already (10.0.0.2, pid 42): two processes were started as n1".
Refusal DuplicateRefusal(const Hello& first, const std::string& first_from);
/// And what process 0 prints of it.
std::string DuplicateLine(const Refusal& refusal, const Hello& second,
                          const std::string& second_from);

/// What a process of another attempt than `self` is told.
NotNow AnotherAttempt(const Hello& hello, const Hello& self);

/// On a thread of its own, until the deadline, Close or the destructor. Then nothing listens.
class Latecomers {
 public:
  /// `acceptor` is the one of the meeting. `say` prints each process that was refused, and at the
  /// end how many strangers were.
  Latecomers(Acceptor acceptor, Roster roster, Deadline until,
             std::function<void(const std::string& line)> say);
  ~Latecomers();
  Latecomers(const Latecomers&) = delete;
  Latecomers& operator=(const Latecomers&) = delete;

  /// Returns at once, from any thread.
  void Close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
