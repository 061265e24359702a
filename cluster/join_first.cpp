// Process 0's side of the meeting: collects the Hellos, checks that they fit together, answers all
// processes.
#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "cluster/acceptor.hpp"
#include "cluster/hello_check.hpp"
#include "cluster/join_channel.hpp"
#include "cluster/join_parts.hpp"
#include "cluster/latecomers.hpp"
#include "cluster/mesh.hpp"
#include "cluster/spare.hpp"
#include "cluster/text.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Time for processes on their way to join and learn that the job does not fit together.
constexpr milliseconds kMismatchGrace{1000};
// Time for a peer that has proven the key to send its Hello.
constexpr milliseconds kHelloTime{10'000};
constexpr milliseconds kFlushTime{1000};
// Time for a lost process to be started again by its launcher, before a spare takes its place.
constexpr milliseconds kSpareGrace{2000};

bool IsSame(const Hello& one, const Hello& other) {
  return one.host == other.host && one.pid == other.pid;
}

/// A connection that has proven the key.
struct Guest {
  JoinChannel channel;
  ProcessId process;
  std::string from;
  Deadline came;
  std::optional<Hello> hello = std::nullopt;
  bool ready = false;
  bool refused = false;  ///< has been sent a Refusal or a NotNow
};

/// A process that is absent when the job meets again.
struct Gap {
  Deadline since;        ///< or since a spare was given the place
  bool awaited = false;  ///< it, or that spare, may come in a moment
};

class First {
 public:
  First(const RunKey& key, const JoinOptions& options)
      : options_(options),
        self_(options.self),
        began_(steady_clock::now()),
        acceptor_(ListenOn({self_.address.host.empty() ? options.seed.host : self_.address.host,
                            options.seed.port}),
                  key.Derive("join"), 0, options.print, TlsOf(options), PlacesOf(options)),
        mesh_(0, self_.num_processes) {
    self_.address = acceptor_.address();
    options.listening(self_.address);
  }

  Joined Run() {
    Gather();
    Joined joined{MakeRoster(), {}};
    Meet(joined.roster);
    joined.peers = mesh_.Take();
    acceptor_.ReportTotal();
    if (options_.answer_latecomers) {
      joined.latecomers = std::make_shared<Latecomers>(
          std::move(acceptor_), joined.roster,
          options_.lasting ? Deadline::max() : steady_clock::now() + options_.timeout,
          options_.lasting, options_.print);
    }
    return joined;
  }

 private:
  void Gather();
  void Meet(const Roster& roster);
  Roster MakeRoster() const;
  void Round(Deadline until);
  void Admit(Arrival arrival, Deadline now);
  /// Notices a peer that has proven the key, but whose Hello does not arrive. A job that begins ends
  /// by `mute_`. In a later generation the peer may be lost, so a line says it.
  void CheckHello(const Guest& guest, Deadline now);
  void Receive(Guest& guest, const Hello& hello);
  /// Refuses a process that comes to a job that goes on, and does not fit it.
  bool RefuseStranger(Guest& guest);
  /// Takes the spares among the guests apart, and refuses those that do not fit.
  void SortOutSpares();
  /// Another guest that has joined with the number of `guest`; null if there is none.
  Guest* JoinedAs(const Guest& guest);
  /// Tells a guest that it does not belong to this meeting: `other` has its number, or is null.
  void SendAway(Guest& guest, const Guest* other);
  std::vector<Claim> Claims() const;  ///< by process
  /// The processes that have not joined, ascending.
  std::vector<ProcessId> Absent() const { return AbsentFrom(Claims(), self_.num_processes); }
  std::vector<std::string> AbsentNames() const;
  /// The generation that this job will be, as far as is known.
  std::int64_t Generation() const;
  /// Gives places of processes that have been absent for long to spares.
  void PlaceSpares(const std::vector<ProcessId>& absent, Deadline now);
  /// Returns the spare that had this place before. Without one, a spare whose own place is not absent.
  /// Returns the end if there is neither.
  std::list<Guest>::iterator SpareFor(ProcessId process, const std::vector<ProcessId>& absent);
  bool WasAway(ProcessId process) const;
  /// Whether the processes that have joined are enough.
  bool IsEnough();
  /// Whether the job begins without the absent processes now.
  bool BeginsWithout(const std::vector<ProcessId>& absent, Deadline now);
  JoinProblem Absence() const;
  /// Sends to all processes that have joined; a Refusal also goes to others that have the key.
  void SendAll(const JoinMessage& message);
  void FlushAll(bool until_closed);
  [[noreturn]] void Refuse(const JoinProblem& problem);

  const JoinOptions& options_;
  Hello self_;
  Deadline began_;
  Acceptor acceptor_;
  Mesh mesh_;
  std::list<Guest> guests_;
  std::list<Guest> spares_;
  std::map<ProcessId, Gap> gaps_;
  PollSet polls_;
  bool meeting_ = false;                     ///< the Roster has been sent
  std::string key_holder_problem_;           ///< found by the Acceptor, of a peer that has the key
  std::optional<JoinProblem> mesh_failure_;  ///< reported by a member
  std::vector<ProcessId> asked_;             ///< whether these are enough
  std::string too_few_;                      ///< why they are not
  std::string mute_;                         ///< of a peer whose Hello does not arrive
};

void First::Gather() {
  const Deadline deadline = began_ + options_.timeout;
  Progress progress(options_);
  Deadline refuse_at = Deadline::max();  ///< because of a mismatch
  for (;;) {
    const Deadline now = steady_clock::now();
    auto mismatch = FindMismatch(self_, Claims());
    if (!mismatch && !key_holder_problem_.empty()) mismatch = JoinProblem{key_holder_problem_};
    const auto absent = Absent();
    if (!mismatch && options_.begins_anew && Generation() > 0) mismatch = OtherRun(self_, Claims());
    if (mismatch && self_.generation == 0 && Generation() > 0) {
      mismatch->fault = JoinFault::kWrongFirst;
    }
    if (options_.refusal) mismatch = options_.refusal;
    if (mismatch) {
      const auto grace = options_.refusal ? options_.refusal_time : kMismatchGrace;
      refuse_at = std::min({refuse_at, now + grace, deadline});
      if (absent.empty() || now >= refuse_at) Refuse(*mismatch);
    } else {
      refuse_at = Deadline::max();
      if (absent.empty()) return;
      PlaceSpares(absent, now);
      if (BeginsWithout(absent, now) || (now >= deadline && IsEnough())) return;
    }
    if (!mute_.empty()) Refuse({mute_});
    if (now >= deadline) Refuse(Absence());
    if (!options_.refusal) {
      progress.Report(now, [&] {
        const auto num_processes = static_cast<std::size_t>(self_.num_processes);
        return "waiting for " + Enumerate(AbsentNames()) + " (" +
               std::to_string(num_processes - absent.size()) + " of " +
               std::to_string(num_processes) + " have joined)";
      });
    }
    Round(std::min(deadline, now + kJoinRound));
  }
}

void First::Meet(const Roster& roster) {
  mesh_.KeepOnly(roster);
  for (const Hello& member : roster.members)
    if (member.process != 0 && options_.tensors(self_, member)) mesh_.NeedTensors(member.process);
  acceptor_.set_run(roster.nonce);
  meeting_ = true;
  SendAll(roster);
  // Each member detects and reports by itself which peers it cannot reach, before process 0 gives
  // up.
  const Deadline deadline = steady_clock::now() + MeshTime(options_) + kReportTime;
  Progress progress(options_);
  for (;;) {
    const Deadline now = steady_clock::now();
    const auto refuse = [&](JoinProblem problem) {
      Refuse(PerhapsLost(std::move(problem), options_));
    };
    if (mesh_failure_) refuse(*mesh_failure_);
    std::vector<std::string> unready;
    for (const Guest& guest : guests_) {
      if (!guest.hello) continue;
      if (!guest.channel.open()) {
        Refuse({guest.hello->name + " left while the job was meeting: " + guest.channel.end(),
                JoinFault::kLeft});
      }
      if (!guest.ready) unready.push_back(guest.hello->name);
      if (guest.channel.stuck(now) >= kStuckTime) {
        refuse({guest.hello->name + " (" + guest.from + "): nothing sent to it arrives there, " +
                kPathAdvice});
      }
    }
    if (unready.empty() && mesh_.complete()) break;
    if (now >= deadline) {
      refuse({Enumerate(unready) + " did not get ready within " +
              InSeconds(MeshTime(options_) + kReportTime) + " after all processes had come"});
    }
    progress.Report(now, [&] { return "connecting: " + Enumerate(unready) + " not yet ready"; });
    Round(std::min(deadline, now + kJoinRound));
  }
  SendAll(Go{});
  FlushAll(/*until_closed=*/false);
}

Roster First::MakeRoster() const {
  Roster roster;
  roster.members.push_back(self_);
  for (const Claim& claim : Claims()) roster.members.push_back(claim.hello);
  roster.generation = Generation();
  while (roster.nonce == 0) FillRandom(std::as_writable_bytes(std::span(&roster.nonce, 1)));
  roster.run_directory = options_.run_directory;
  return roster;
}

void First::Round(Deadline until) {
  Deadline now = steady_clock::now();
  polls_.Clear();
  acceptor_.AddTo(polls_, now);
  for (const auto* guests : {&guests_, &spares_}) {
    for (const Guest& guest : *guests)
      if (guest.channel.open()) polls_.Add(guest.channel.fd(), guest.channel.events());
  }
  polls_.Wait(std::min(until, acceptor_.NextDeadline(now)));
  now = steady_clock::now();
  // Guests first: one that has left makes room for the same process coming back.
  for (Guest& guest : guests_) {
    guest.channel.Serve();
    while (const auto message = guest.channel.Next()) {
      if (const auto* hello = std::get_if<Hello>(&*message)) Receive(guest, *hello);
      if (!guest.hello || !meeting_) continue;
      if (const auto* failure = std::get_if<MeshFailure>(&*message))
        mesh_failure_ = failure->problem;
      if (std::holds_alternative<Ready>(*message)) guest.ready = true;
    }
  }
  for (Guest& spare : spares_) spare.channel.Serve();
  spares_.remove_if([](const Guest& spare) { return !spare.channel.open(); });
  SortOutSpares();
  for (const Guest& guest : guests_) CheckHello(guest, now);
  guests_.remove_if([&](const Guest& guest) {
    if (guest.hello) return !guest.channel.open() && !meeting_;
    return !guest.channel.open() || now >= guest.came + kHelloTime;
  });
  for (Arrival& arrival : acceptor_.Serve(polls_, now)) Admit(std::move(arrival), now);
}

void First::CheckHello(const Guest& guest, Deadline now) {
  if (guest.hello || guest.refused || now < guest.came + kStuckTime) return;
  // It gives up by itself on the same condition, a moment earlier or later.
  if (guest.channel.open() && now < guest.came + kHelloTime) return;
  for (const Claim& claim : Claims())
    if (claim.hello.process == guest.process) return;
  const std::string text = NameOf(options_, guest.process) + " (" + guest.from +
                           "): nothing it sends arrives here, " + kPathAdvice;
  if (Generation() > 0) return options_.print(text);
  mute_ = text;
}

void First::Admit(Arrival arrival, Deadline now) {
  if (!arrival.connection) {
    key_holder_problem_ = arrival.problem;
  } else if (BelongsToRun(arrival.other.purpose)) {
    mesh_.Put(arrival.other.from, arrival.other.purpose, *std::move(arrival.connection));
  } else if (arrival.other.purpose == Purpose::kJoin) {
    JoinChannel channel(*std::move(arrival.connection), Side::kAcceptor);
    channel.KeepAlive();
    std::string from = channel.peer_address().host;
    guests_.push_back({std::move(channel), arrival.other.from, std::move(from), now});
  }
}

void First::Receive(Guest& guest, const Hello& hello) {
  if (guest.hello || guest.refused || hello.process != guest.process) return;
  guest.hello = hello;
  if (hello.process == kSpareProcess || RefuseStranger(guest)) return;
  Guest* const first = JoinedAs(guest);
  if (meeting_) return SendAway(guest, first);
  if (first == nullptr) return;
  if (IsSame(*first->hello, hello)) {
    first->hello.reset();  // it has lost its first connection before this side noticed
  } else if (first->hello->generation != hello.generation) {
    const bool is_older = hello.generation < first->hello->generation;
    SendAway(is_older ? guest : *first, is_older ? first : &guest);
  } else if (options_.lasting && hello.generation > 0) {
    SendAway(guest, first);  // a spare and the process that was started again
  } else if (options_.lasting && first->hello->host == hello.host && first->from == guest.from) {
    SendAway(*first, &guest);  // its launcher has lost the first one
  }
}

bool First::RefuseStranger(Guest& guest) {
  // Others have been in this job before, or were started by a launcher that has.
  if (self_.generation == 0 || guest.hello->generation > 0) return false;
  const auto problem = FindMismatch(self_, {{*guest.hello, guest.from}});
  if (!problem) return false;
  options_.print("refused: " + problem->text);
  guest.hello.reset();
  guest.refused = true;
  guest.channel.Send(Refusal{*problem});
  return true;
}

void First::SortOutSpares() {
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    const auto next = std::next(guest);
    if (guest->hello && guest->hello->process == kSpareProcess) {
      if (const auto refusal =
              RefusalOfSpare(self_, options_.lasting, *guest->hello, guest->from)) {
        guest->hello.reset();
        guest->refused = true;
        guest->channel.Send(*refusal);
      } else {
        spares_.splice(spares_.end(), guests_, guest);
      }
    }
    guest = next;
  }
}

void First::PlaceSpares(const std::vector<ProcessId>& absent, Deadline now) {
  const std::int64_t generation = Generation();
  if (!options_.lasting || generation == 0) return gaps_.clear();
  std::erase_if(gaps_, [&](const auto& entry) {
    return std::ranges::find(absent, entry.first) == absent.end();
  });
  for (const ProcessId process : absent) {
    Gap& gap =
        gaps_.try_emplace(process, Gap{.since = now, .awaited = !WasAway(process)}).first->second;
    if (gap.awaited && now - gap.since < kSpareGrace) continue;
    const auto spare = SpareFor(process, absent);
    if (spare == spares_.end()) continue;
    options_.print("the spare at " + spare->from + " (pid " + std::to_string(spare->hello->pid) +
                   ") takes the place of " + NameOf(options_, process));
    spare->channel.Send(TakePlace{process, generation});
    spare->channel.Serve();
    spare->hello.reset();
    spare->refused = true;
    guests_.splice(guests_.end(), spares_, spare);  // until it closes
    gap = {.since = now, .awaited = true};
  }
}

std::list<Guest>::iterator First::SpareFor(ProcessId process,
                                           const std::vector<ProcessId>& absent) {
  const auto former = [](const Guest& spare) { return spare.hello->former; };
  const auto own = std::ranges::find(spares_, process, former);
  if (own != spares_.end()) return own;
  return std::ranges::find_if(spares_, [&](const Guest& spare) {
    return std::ranges::find(absent, spare.hello->former) == absent.end();
  });
}

bool First::WasAway(ProcessId process) const {
  return std::ranges::find(options_.away, process) != options_.away.end();
}

bool First::BeginsWithout(const std::vector<ProcessId>& absent, Deadline now) {
  // Spares get places first.
  if (!options_.why_too_few || gaps_.empty() || !spares_.empty()) return false;
  for (const ProcessId process : absent) {
    const Gap& gap = gaps_.at(process);
    const auto patience = gap.awaited ? std::max(options_.patience, kSpareGrace) : kSpareGrace;
    if (now - gap.since < patience) return false;
  }
  return IsEnough();
}

bool First::IsEnough() {
  if (!options_.why_too_few || Generation() == 0) return false;
  std::vector<ProcessId> present = {0};
  for (const Claim& claim : Claims()) present.push_back(claim.hello.process);
  if (present != std::exchange(asked_, present)) too_few_ = options_.why_too_few(present);
  return too_few_.empty();
}

std::int64_t First::Generation() const {
  std::int64_t generation = self_.generation;
  for (const Guest& guest : guests_)
    if (guest.hello) generation = std::max(generation, guest.hello->generation);
  return generation;
}

Guest* First::JoinedAs(const Guest& guest) {
  for (Guest& other : guests_) {
    if (&other != &guest && other.hello && other.hello->process == guest.hello->process)
      return &other;
  }
  return nullptr;
}

void First::SendAway(Guest& guest, const Guest* other) {
  const Hello hello = *std::exchange(guest.hello, std::nullopt);
  guest.refused = true;
  if (other == nullptr || IsSame(*other->hello, hello)) {
    return guest.channel.Send(NotNow{"the job has started without it"});
  }
  Refusal refusal = DuplicateRefusal(*other->hello, other->from);
  refusal.problem.fault = JoinFault::kTaken;
  // The other may have ended a moment ago.
  if (meeting_ && options_.lasting) return guest.channel.Send(NotNow{refusal.problem.text});
  options_.print(DuplicateLine(refusal, hello, guest.from));
  guest.channel.Send(refusal);
}

std::vector<Claim> First::Claims() const {
  std::vector<Claim> claims;
  for (const Guest& guest : guests_)
    if (guest.hello) claims.push_back({*guest.hello, guest.from});
  std::ranges::sort(claims, {}, [](const Claim& claim) { return claim.hello.process; });
  return claims;
}

std::vector<std::string> First::AbsentNames() const {
  std::vector<std::string> names;
  for (const ProcessId process : Absent()) names.push_back(NameOf(options_, process));
  return names;
}

JoinProblem First::Absence() const {
  std::vector<std::string> joined;
  for (const Claim& claim : Claims()) joined.push_back(claim.hello.name);
  std::string text = Enumerate(AbsentNames()) + " did not join within " +
                     InSeconds(options_.timeout) + " (joined at " +
                     ToString(Address{options_.seed.host, self_.address.port}) + ": " +
                     (joined.empty() ? "none" : Enumerate(joined));
  const auto num_refused = acceptor_.num_refused();
  if (num_refused > 0) {
    text += "; " + Counted(static_cast<std::int64_t>(num_refused), "connection") +
            " could not prove the run key";
  }
  text += ")";
  if (!too_few_.empty()) text += "; the job cannot go on with fewer processes: " + too_few_;
  return {text, num_refused > 0 ? JoinFault::kRunKey : JoinFault::kAbsent};
}

void First::SendAll(const JoinMessage& message) {
  for (Guest& guest : guests_) {
    if (guest.channel.open() && !guest.refused &&
        (guest.hello || std::holds_alternative<Refusal>(message)))
      guest.channel.Send(message);
  }
}

void First::FlushAll(bool until_closed) {
  const Deadline deadline = steady_clock::now() + kFlushTime;
  const auto owed = [&](const Guest& guest) {
    return guest.channel.open() && (until_closed || !guest.channel.flushed());
  };
  for (Guest& guest : guests_) guest.channel.Serve();
  while (std::any_of(guests_.begin(), guests_.end(), owed) && steady_clock::now() < deadline) {
    polls_.Clear();
    for (const Guest& guest : guests_)
      if (owed(guest)) polls_.Add(guest.channel.fd(), guest.channel.events());
    polls_.Wait(deadline);
    for (Guest& guest : guests_) {
      guest.channel.Serve();
      while (guest.channel.Next()) continue;
    }
  }
}

void First::Refuse(const JoinProblem& problem) {
  SendAll(Refusal{problem});
  if (!MeetsAgain(problem.fault)) {
    // The job has ended for the spares, too, for whatever reason.
    const bool is_done = problem.fault == JoinFault::kDone;
    for (Guest& spare : spares_) {
      spare.channel.Send(Refusal{{problem.text, is_done ? problem.fault : JoinFault::kEnded}});
    }
    guests_.splice(guests_.end(), spares_);
  }
  // Closing a connection with unread bytes would also discard bytes sent to the peer.
  FlushAll(/*until_closed=*/true);
  throw JoinError(problem);
}

}  // namespace

Joined JoinAsFirst(const RunKey& key, const JoinOptions& options) {
  return First(key, options).Run();
}

}  // namespace troupe
