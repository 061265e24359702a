// Actors that never lived: they handle messages one by one in simulated time, and everything is
// noted as a run would note it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <vector>

#include "trace/run_trace.hpp"

namespace troupe::generated {

/// What travels; everything that a record of it holds besides times.
struct Letter {
  std::string type;
  std::int64_t round = -1;
  std::int64_t unit = -1;
  int link = -1;
  std::int64_t bytes = 0;
  int credits = -1;
  std::int64_t step = -1;
  int from = 0;  ///< actor
};

class World {
 public:
  /// What an actor does with a letter; it may send more, which leave when the handler ends.
  using Handler = std::function<void(const Letter&)>;

  /// Actors of one process hear of each other after `near_ns`, others after `far_ns`.
  World(std::int64_t near_ns, std::int64_t far_ns) : near_ns_(near_ns), far_ns_(far_ns) {}

  /// Every letter takes `handling_ns` unless the handler says otherwise by Work().
  int AddActor(const ActorId& id, int process, std::int64_t handling_ns, Handler handler);
  int Actor(const ActorId& id) const { return by_name_.at(ToString(id)); }
  int TypeOf(const std::string& type);

  // Inside handlers.
  void Send(int to, Letter letter);
  /// The handling is work of a device and takes that long.
  void Work(const PassRecord& pass, std::int64_t takes_ns);
  /// The handling takes that much longer.
  void Delay(std::int64_t extra_ns) { takes_ns_ += extra_ns; }
  /// The letter is never delivered.
  void Lose(int to, Letter letter);
  /// The handler that runs never ends, nor does anything after it on this actor.
  void Hang() { hangs_ = true; }

  /// From outside, at time 0; then everything that follows.
  void Run(int to, Letter letter);

  /// Messages and work sorted as RunTrace wants them. Once.
  RunTrace Take();

 private:
  struct Member {
    Handler handler;
    std::int64_t handling_ns = 0;
    std::int64_t free_ns = 0;
    bool stuck = false;
  };
  struct Delivery {
    std::int64_t at_ns = 0;
    int message = 0;
    bool operator>(const Delivery& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : message > other.message;
    }
  };
  struct Leaving {
    int to = 0;
    Letter letter;
    bool lost = false;
  };

  void Post(int to, const Letter& letter, int sender, std::int64_t at_ns, int cause, bool lost);
  void Handle(int message);

  std::int64_t near_ns_;
  std::int64_t far_ns_;
  RunTrace trace_;
  std::vector<Letter> letters_;  ///< by message
  std::vector<Member> members_;
  std::map<std::string, int> by_name_;
  std::map<std::string, int> types_;
  std::map<int, std::int64_t> worked_;  ///< by process: pieces of work so far
  std::priority_queue<Delivery, std::vector<Delivery>, std::greater<>> under_way_;
  // Of the handler that runs.
  int current_ = -1;
  int current_message_ = -1;
  std::vector<Leaving> leaving_;
  std::int64_t takes_ns_ = 0;
  std::vector<PassRecord> done_;
  bool hangs_ = false;
};

}  // namespace troupe::generated
