#include "cluster/latecomers.hpp"

#include <algorithm>
#include <chrono>
#include <poll.h>
#include <utility>

#include "cluster/signals_blocked.hpp"
#include "cluster/spare.hpp"

namespace troupe {
namespace {

using std::chrono::steady_clock;

// Time for a peer that has proven the key to send its Hello and to read the answer.
constexpr std::chrono::milliseconds kVisitTime{5000};

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

void Latecomers::Run() {
  try {
    while (!closing_ && steady_clock::now() < until_) Round();
    acceptor_.ReportTotal();
    DismissSpares();
  } catch (const std::exception& error) {
    print_(std::string("no longer answering latecomers: ") + error.what());
  }
  spares_ = 0;
  // Destroyed here, so that the port is closed while the job runs.
  const Acceptor closed = std::move(acceptor_);
  visitors_.clear();
}

void Latecomers::Round() {
  Deadline now = steady_clock::now();
  polls_.Clear();
  polls_.Add(wake_up_.fd(), POLLIN);
  acceptor_.AddTo(polls_, now);
  for (const Visitor& visitor : visitors_)
    polls_.Add(visitor.channel.fd(), visitor.channel.events());
  polls_.Wait(std::min(until_, acceptor_.NextDeadline(now)));
  now = steady_clock::now();
  for (Visitor& visitor : visitors_) {
    visitor.channel.Serve();
    while (const auto message = visitor.channel.Next())
      if (const auto* hello = std::get_if<Hello>(&*message)) Answer(visitor, *hello);
    visitor.channel.Serve();
  }
  visitors_.remove_if(
      [now](const Visitor& visitor) { return !visitor.channel.open() || now >= visitor.until; });
  spares_ = static_cast<int>(std::ranges::count_if(visitors_, &Visitor::is_spare));
  for (Arrival& arrival : acceptor_.Serve(polls_, now)) {
    if (!arrival.connection || arrival.other.purpose != Purpose::kJoin) continue;
    visitors_.push_back(
        {JoinChannel(*std::move(arrival.connection), Side::kAcceptor), now + kVisitTime});
  }
}

void Latecomers::Answer(Visitor& visitor, const Hello& hello) {
  if (std::exchange(visitor.answered, true)) return;
  if (hello.process == kSpareProcess) {
    const std::string from = visitor.channel.peer_address().host;
    if (const auto refusal = RefusalOfSpare(roster_.members.front(), lasting_, hello, from))
      return visitor.channel.Send(*refusal);
    visitor.is_spare = true;
    visitor.until = Deadline::max();
    visitor.channel.KeepAlive();  // its machine may be lost without a word
    return print_("a spare has come from " + from + " (pid " + std::to_string(hello.pid) + ")");
  }
  if (SendDone(visitor)) return;
  // It noticed a loss before this process did.
  if (hello.generation > roster_.generation)
    return visitor.channel.Send(NotNow{"the job has not noticed a loss yet"});
  if (hello.process < 1 || hello.process >= roster_.members.front().num_processes)
    return visitor.channel.Send(NotNow{"the job has started without it"});
  const Hello* const first = FindMember(roster_, hello.process);
  if (first == nullptr) {
    visitor.channel.Send(Refusal{{"the job has gone on without " + hello.name, JoinFault::kTaken}});
    return;
  }
  const Refusal refusal = DuplicateRefusal(*first, first->address.host);
  if (lasting_) return visitor.channel.Send(NotNow{refusal.problem.text});
  visitor.channel.Send(refusal);
  print_(DuplicateLine(refusal, hello, visitor.channel.peer_address().host));
}

bool Latecomers::SendDone(Visitor& visitor) {
  const std::lock_guard lock(mutex_);
  if (!is_done_) return false;
  visitor.channel.Send(Refusal{DoneProblem()});
  visitor.channel.Serve();
  ++num_told_;
  told_.notify_all();
  return true;
}

void Latecomers::TellDone(std::int64_t num_processes, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  is_done_ = true;
  told_.wait_for(lock, patience, [&] { return num_told_ >= num_processes; });
}

Latecomers::Latecomers(Acceptor acceptor, Roster roster, Deadline until, bool lasting,
                       std::function<void(const std::string& line)> print)
    : acceptor_(std::move(acceptor)),
      roster_(std::move(roster)),
      until_(until),
      lasting_(lasting),
      print_(std::move(print)) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
}

void Latecomers::DismissSpares() {
  JoinProblem why;
  {
    const std::lock_guard lock(mutex_);
    why = why_;
  }
  if (why.text.empty()) return;
  for (Visitor& visitor : visitors_) {
    if (!visitor.is_spare) continue;
    visitor.channel.Send(Refusal{why});
    visitor.channel.Serve();
  }
}

Latecomers::~Latecomers() {
  Close();
  thread_.join();
}

void Latecomers::Close(const JoinProblem& why) {
  {
    const std::lock_guard lock(mutex_);
    if (why_.text.empty()) why_ = why;
  }
  closing_ = true;
  wake_up_.Signal();
}

}  // namespace troupe
