#include "cluster/latecomers.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <poll.h>
#include <thread>
#include <utility>

#include "cluster/join_channel.hpp"
#include "cluster/signals_blocked.hpp"
#include "cluster/wake_up.hpp"

namespace troupe {
namespace {

using std::chrono::steady_clock;

// Time for a peer that has proven the key to send its Hello and to read the answer.
constexpr std::chrono::milliseconds kVisitTime{5000};

struct Visitor {
  JoinChannel channel;
  Deadline until;
  bool answered = false;
};

}  // namespace

Refusal DuplicateRefusal(const Hello& first, const std::string& first_from) {
  return {{first.name + " has already joined (" + first_from + ", pid " +
           std::to_string(first.pid) + "): two processes were started as " + first.name}};
}

std::string DuplicateLine(const Refusal& refusal, const Hello& second,
                          const std::string& second_from) {
  return refusal.problem.text + "; the second one (" + second_from + ", pid " +
         std::to_string(second.pid) + ") was refused";
}

NotNow AnotherAttempt(const Hello& hello, const Hello& self) {
  return {hello.name + " is at attempt " + std::to_string(hello.attempt) + ", " + self.name +
          " at attempt " + std::to_string(self.attempt)};
}

struct Latecomers::State {
  State(Acceptor acceptor_in, Roster roster_in, Deadline until_in,
        std::function<void(const std::string& line)> print_in)
      : acceptor(std::move(acceptor_in)),
        roster(std::move(roster_in)),
        until(until_in),
        print(std::move(print_in)) {}

  void Run();
  void Round();
  void Answer(Visitor& visitor, const Hello& hello);

  Acceptor acceptor;
  const Roster roster;
  const Deadline until;
  const std::function<void(const std::string& line)> print;
  std::list<Visitor> visitors;
  PollSet polls;
  WakeUp wake_up;
  std::atomic<bool> closing{false};
  std::thread thread;  ///< last: it uses all of the above
};

void Latecomers::State::Run() {
  try {
    while (!closing && steady_clock::now() < until) Round();
    acceptor.ReportTotal();
  } catch (const std::exception& error) {
    if (print) print(std::string("no longer answering latecomers: ") + error.what());
  }
  // Destroyed here, so that the port is closed while the job runs.
  const Acceptor closed = std::move(acceptor);
  visitors.clear();
}

void Latecomers::State::Round() {
  Deadline now = steady_clock::now();
  polls.Clear();
  polls.Add(wake_up.fd(), POLLIN);
  acceptor.AddTo(polls, now);
  for (const Visitor& visitor : visitors) polls.Add(visitor.channel.fd(), visitor.channel.events());
  polls.Wait(std::min(until, acceptor.NextDeadline(now)));
  now = steady_clock::now();
  for (Visitor& visitor : visitors) {
    visitor.channel.Serve();
    while (const auto message = visitor.channel.Next())
      if (const auto* hello = std::get_if<Hello>(&*message)) Answer(visitor, *hello);
    visitor.channel.Serve();
  }
  visitors.remove_if(
      [now](const Visitor& visitor) { return !visitor.channel.open() || now >= visitor.until; });
  for (Arrival& arrival : acceptor.Serve(polls, now)) {
    if (!arrival.problem.empty() || arrival.other.purpose != Purpose::kJoin) continue;
    visitors.push_back({JoinChannel(std::move(arrival.socket), arrival.session, Side::kAcceptor,
                                    std::move(arrival.wire)),
                        now + kVisitTime});
  }
}

void Latecomers::State::Answer(Visitor& visitor, const Hello& hello) {
  if (std::exchange(visitor.answered, true)) return;
  const Hello& self = roster.members.front();
  if (hello.attempt != self.attempt) return visitor.channel.Send(AnotherAttempt(hello, self));
  if (hello.process < 1 || hello.process >= static_cast<ProcessId>(roster.members.size()))
    return visitor.channel.Send(NotNow{"the job has started without it"});
  const Hello& first = roster.members[static_cast<std::size_t>(hello.process)];
  const Refusal refusal = DuplicateRefusal(first, first.address.host);
  visitor.channel.Send(refusal);
  if (print) print(DuplicateLine(refusal, hello, visitor.channel.peer_address().host));
}

Latecomers::Latecomers(Acceptor acceptor, Roster roster, Deadline until,
                       std::function<void(const std::string& line)> print)
    : state_(std::make_unique<State>(std::move(acceptor), std::move(roster), until,
                                     std::move(print))) {
  const SignalsBlocked blocked;
  state_->thread = std::thread([state = state_.get()] { state->Run(); });
}

Latecomers::~Latecomers() {
  Close();
  state_->thread.join();
}

void Latecomers::Close() {
  state_->closing = true;
  state_->wake_up.Signal();
}

}  // namespace troupe
