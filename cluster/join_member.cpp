// The other processes' side of the meeting: finds process 0, then connects to its peers in the
// Roster.
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <unistd.h>
#include <utility>

#include "cluster/acceptor.hpp"
#include "cluster/dialer.hpp"
#include "cluster/join_channel.hpp"
#include "cluster/join_parts.hpp"
#include "cluster/mesh.hpp"
#include "cluster/text.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Time for process 0 to send its decision, beyond its own deadlines.
constexpr milliseconds kPatience{5000};
// A process makes up to three connections per peer, all processes at once. This limit spares the
// acceptors' places.
constexpr std::size_t kMostDials = 8;

class Member {
 public:
  Member(const RunKey& key, const JoinOptions& options)
      : options_(options),
        self_(options.self),
        key_(key.Derive("join")),
        deadline_(steady_clock::now() + options.timeout),
        mesh_(self_.process, self_.num_processes),
        progress_(options) {
    // A listener on any free port must wait: the system might choose the port that process 0 is
    // about to use, and this process would connect to itself.
    if (!self_.address.host.empty() && self_.address.port != 0) Listen(self_.address);
    Dial(steady_clock::now());
  }

  Joined Run() {
    while (!started_) {
      const Deadline now = steady_clock::now();
      CheckDeadlines(now);
      progress_.Report(now, [&] { return ProgressText(); });
      Round(now + kJoinRound);
    }
    acceptor_->ReportTotal();
    return {std::move(*roster_), mesh_.Take()};
  }

 private:
  void Listen(const Address& address);
  void Dial(Deadline not_before);
  void Round(Deadline until);
  void FindFirst(Deadline now);
  void Introduce(Deadline now);
  void Listen();
  void Receive(const JoinMessage& message, Deadline now);
  void CheckMembers(const Roster& roster) const;
  void BeginMesh(Roster roster, Deadline now);
  void ServeMesh(Deadline now);
  void Report(const JoinProblem& problem);
  void CheckDeadlines(Deadline now);
  JoinProblem Unreachable() const;
  std::string ProgressText() const;
  std::vector<std::string> MissingPeers() const;
  std::string NameOfPeer(ProcessId process) const;

  const JoinOptions& options_;
  Hello self_;
  RunKey key_;
  Deadline deadline_;  ///< to get an answer from process 0
  Mesh mesh_;
  Progress progress_;
  PollSet polls_;
  std::optional<Acceptor> acceptor_;
  std::optional<Dialer> dialer_;        ///< while there is no channel
  std::optional<JoinChannel> channel_;  ///< to process 0
  std::string last_problem_;            ///< why the last channel ended, as a sentence
  Deadline verdict_by_{};               ///< while there is a channel
  std::optional<Roster> roster_;
  Deadline mesh_by_{};                            ///< with a roster
  std::deque<DialOptions> dials_;                 ///< not started
  std::vector<std::unique_ptr<Dialer>> dialers_;  ///< started
  bool reported_ = false;                         ///< has sent Ready or the failure
  bool started_ = false;                          ///< process 0 has sent Go
};

void Member::Listen(const Address& address) {
  acceptor_.emplace(ListenOn(address), key_, self_.process, options_.print, TlsOf(options_),
                    PlacesOf(options_));
  self_.address = acceptor_->address();
  options_.listening(self_.address);
}

void Member::Dial(Deadline not_before) {
  channel_.reset();
  dialer_.emplace(key_, DialOptions{options_.seed, Purpose::kJoin, self_.process, 0, 0, not_before,
                                    TlsOf(options_)});
}

void Member::Round(Deadline until) {
  Deadline now = steady_clock::now();
  polls_.Clear();
  if (acceptor_) {
    acceptor_->AddTo(polls_, now);
    until = std::min(until, acceptor_->NextDeadline(now));
  }
  if (channel_) polls_.Add(channel_->fd(), channel_->events());
  if (dialer_) {
    dialer_->AddTo(polls_);
    until = std::min(until, dialer_->NextDeadline());
  }
  for (const auto& dialer : dialers_) {
    dialer->AddTo(polls_);
    until = std::min(until, dialer->NextDeadline());
  }
  polls_.Wait(until);
  now = steady_clock::now();
  if (dialer_) FindFirst(now);
  if (channel_) {
    channel_->Serve();
    while (channel_ && !started_) {
      const auto message = channel_->Next();
      if (!message) break;
      Receive(*message, now);
    }
  }
  if (channel_ && !channel_->open() && !started_) {
    last_problem_ = ToString(options_.seed) + ": " + channel_->end();
    if (roster_) {
      throw JoinError({NameOfPeer(0) + " (" + ToString(options_.seed) +
                           ") left while the job was meeting: " + channel_->end(),
                       JoinFault::kLeft});
    }
    Dial(now + kComeBackAfter);
  }
  if (acceptor_) {
    for (Arrival& arrival : acceptor_->Serve(polls_, now)) {
      if (roster_ && arrival.connection && BelongsToRun(arrival.other.purpose) &&
          arrival.other.from > self_.process)
        mesh_.Put(arrival.other.from, arrival.other.purpose, *std::move(arrival.connection));
    }
  }
  if (roster_ && !started_) ServeMesh(now);
}

void Member::FindFirst(Deadline now) {
  switch (dialer_->Serve(polls_, now)) {
    case Dialer::Status::kTrying:
      return;
    case Dialer::Status::kFailed:
      throw JoinError({dialer_->error(), dialer_->fault()});
    case Dialer::Status::kConnected:
      Introduce(now);
  }
}

void Member::Introduce(Deadline now) {
  channel_.emplace(dialer_->Take(), Side::kInitiator);
  dialer_.reset();
  if (!channel_->open()) return;
  if (!acceptor_) {
    const std::string local_host = channel_->local_address().host;
    Listen({self_.address.host.empty() ? local_host : self_.address.host, self_.address.port});
  }
  const std::string& host = self_.address.host;
  if (host == "0.0.0.0" || host == "::") self_.address.host = channel_->local_address().host;
  channel_->KeepAlive();  // the machine of process 0 may be lost without a word
  channel_->Send(self_);
  verdict_by_ = std::max(deadline_, now + options_.timeout) + kPatience;
}

void Member::Receive(const JoinMessage& message, Deadline now) {
  if (const auto* refusal = std::get_if<Refusal>(&message)) throw JoinError(refusal->problem);
  if (const auto* not_now = std::get_if<NotNow>(&message); not_now && !roster_) {
    last_problem_ = not_now->text;
    Dial(now + kComeBackAfter);
  }
  if (const auto* roster = std::get_if<Roster>(&message); roster && !roster_)
    BeginMesh(*roster, now);
  if (std::holds_alternative<Go>(message)) {
    if (!roster_ || !mesh_.complete())
      throw JoinError({NameOfPeer(0) + " sent Go before " + self_.name + " was ready"});
    started_ = true;
  }
}

void Member::CheckMembers(const Roster& roster) const {
  ProcessId next = 0;
  for (const Hello& member : roster.members) {
    const bool is_first = &member == &roster.members.front();
    if (member.process < next || member.process >= self_.num_processes ||
        (is_first && member.process != 0)) {
      throw JoinError({"expected " + std::string(is_first ? "process 0" : "a later process") +
                       " of " + std::to_string(self_.num_processes) + " in the roster, got " +
                       std::to_string(member.process)});
    }
    next = member.process + 1;
  }
  if (FindMember(roster, self_.process) == nullptr) {
    throw JoinError({"expected " + self_.name + " in the roster, which has " +
                     Counted(std::ssize(roster.members), "member")});
  }
}

void Member::BeginMesh(Roster roster, Deadline now) {
  CheckMembers(roster);
  for (Hello& member : roster.members) {
    member.num_processes = self_.num_processes;
    member.build = self_.build;
    member.config = self_.config;
    member.generation = roster.generation;
  }
  // The address at which process 0 was reached, whatever it reports itself.
  roster.members[0].address = channel_->peer_address();
  acceptor_->set_run(roster.nonce);
  mesh_.KeepOnly(roster);
  for (const Hello& other : roster.members) {
    const ProcessId peer = other.process;
    const bool tensors = peer != self_.process && options_.tensors(self_, other);
    if (tensors) mesh_.NeedTensors(peer);
    for (const Purpose purpose : {Purpose::kControl, Purpose::kHeartbeat, Purpose::kTensors}) {
      if (peer < self_.process && (purpose != Purpose::kTensors || tensors)) {
        dials_.push_back(
            {other.address, purpose, self_.process, peer, roster.nonce, now, TlsOf(options_)});
      }
    }
  }
  mesh_by_ = now + MeshTime(options_);
  verdict_by_ = mesh_by_ + kReportTime + kPatience;
  roster_ = std::move(roster);
}

void Member::ServeMesh(Deadline now) {
  while (dialers_.size() < kMostDials && !dials_.empty()) {
    dialers_.push_back(std::make_unique<Dialer>(key_, dials_.front()));
    dials_.pop_front();
  }
  for (const auto& dialer : dialers_) {
    const Dialer::Status status = dialer->Serve(polls_, now);
    const DialOptions& options = dialer->options();
    if (status == Dialer::Status::kConnected)
      mesh_.Put(options.other, options.purpose, dialer->Take());
    if (status == Dialer::Status::kFailed ||
        (status == Dialer::Status::kTrying && now >= mesh_by_)) {
      Report({self_.name + " cannot reach " + NameOfPeer(options.other) + " at " +
                  ToString(options.address) +
                  (now >= mesh_by_ ? " within " + InSeconds(MeshTime(options_)) : "") + ": " +
                  (dialer->error().empty() ? "connection timed out" : dialer->error()),
              dialer->fault() == JoinFault::kOther ? JoinFault::kUnreachable : dialer->fault()});
    }
  }
  std::erase_if(dialers_,
                [](const auto& dialer) { return dialer->status() != Dialer::Status::kTrying; });
  if (mesh_.complete() && !reported_) {
    channel_->Send(Ready{});
    reported_ = true;
  }
  if (now >= mesh_by_ && !mesh_.complete() && !reported_) {
    Report({self_.name + " was not reached by " + Enumerate(MissingPeers()) + " within " +
                InSeconds(MeshTime(options_)),
            JoinFault::kUnreached});
  }
}

void Member::Report(const JoinProblem& problem) {
  if (!std::exchange(reported_, true)) channel_->Send(MeshFailure{problem});
}

void Member::CheckDeadlines(Deadline now) {
  if (!channel_ && now >= deadline_) throw JoinError(Unreachable());
  if (channel_ && channel_->stuck(now) >= kStuckTime) {
    throw JoinError(PerhapsLost({NameOfPeer(0) + " (" + ToString(options_.seed) +
                                 "): nothing sent to it arrives there, " + kPathAdvice},
                                options_));
  }
  if (channel_ && now >= verdict_by_) {
    throw JoinError(PerhapsLost({NameOfPeer(0) + " at " + ToString(options_.seed) +
                                 " has not sent the next message in time (stopped?)"},
                                options_));
  }
}

JoinProblem Member::Unreachable() const {
  if (!last_problem_.empty()) {
    return {
        self_.name + " did not join within " + InSeconds(options_.timeout) + ": " + last_problem_,
        JoinFault::kAbsent};
  }
  return {"cannot reach " + ToString(options_.seed) + " within " + InSeconds(options_.timeout) +
              ": " + (dialer_->error().empty() ? "connection timed out" : dialer_->error()) +
              " (is process 0 running, is the address right?)",
          JoinFault::kUnreachable};
}

std::string Member::ProgressText() const {
  const std::string first = NameOfPeer(0) + " at " + ToString(options_.seed);
  if (!channel_) {
    return "waiting for " + first + (dialer_->error().empty() ? "" : ": " + dialer_->error()) +
           (dialer_->refused() ? " (not started yet, or it has ended: see its output)" : "");
  }
  if (!roster_) return "waiting for the other processes; " + first + " has accepted this one";
  return mesh_.complete() ? "waiting for the other processes to connect"
                          : "connecting: no connection yet with " + Enumerate(MissingPeers());
}

std::vector<std::string> Member::MissingPeers() const {
  std::vector<std::string> names;
  for (const ProcessId peer : mesh_.Missing()) names.push_back(NameOfPeer(peer));
  return names;
}

std::string Member::NameOfPeer(ProcessId process) const {
  const Hello* const member = roster_ ? FindMember(*roster_, process) : nullptr;
  return member != nullptr ? member->name : NameOf(options_, process);
}

}  // namespace

Joined JoinAsMember(const RunKey& key, const JoinOptions& options) {
  return Member(key, options).Run();
}

}  // namespace troupe
