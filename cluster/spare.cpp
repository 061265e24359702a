#include "cluster/spare.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "cluster/dialer.hpp"
#include "cluster/hello_check.hpp"
#include "cluster/join_channel.hpp"
#include "cluster/join_parts.hpp"
#include "cluster/poll_set.hpp"

namespace troupe {
namespace {

using std::chrono::steady_clock;

class Spare {
 public:
  Spare(const RunKey& key, const JoinOptions& options)
      : options_(options), key_(key.Derive("join")), progress_(options) {
    Dial(steady_clock::now());
  }

  TakePlace Run() {
    for (;;) {
      const Deadline now = steady_clock::now();
      if (!channel_) {
        if (now >= found_by_) throw JoinError(Unreachable());
        progress_.Report(now, [&] { return "waiting for " + First(); });
      }
      if (auto place = Round(now + kJoinRound)) return *place;
    }
  }

 private:
  std::string First() const { return "process 0 at " + ToString(options_.seed); }

  void Dial(Deadline not_before) {
    channel_.reset();
    found_by_ = steady_clock::now() + options_.timeout;
    dialer_.emplace(key_, DialOptions{options_.seed, Purpose::kJoin, kSpareProcess, 0, 0,
                                      not_before, TlsOf(options_)});
  }

  std::optional<TakePlace> Round(Deadline until) {
    polls_.Clear();
    if (channel_) polls_.Add(channel_->fd(), channel_->events());
    if (dialer_) {
      dialer_->AddTo(polls_);
      until = std::min(until, dialer_->NextDeadline());
    }
    polls_.Wait(until);
    const Deadline now = steady_clock::now();
    if (dialer_) Introduce(now);
    if (!channel_) return std::nullopt;
    channel_->Serve();
    while (const auto message = channel_->Next()) {
      if (const auto* place = std::get_if<TakePlace>(&*message)) return *place;
      const auto* refusal = std::get_if<Refusal>(&*message);
      if (refusal == nullptr) continue;
      if (!MeetsAgain(refusal->problem.fault)) throw JoinError(refusal->problem);
      Dial(now + kComeBackAfter);
      return std::nullopt;
    }
    if (!channel_->open()) Dial(now + kComeBackAfter);
    return std::nullopt;
  }

  void Introduce(Deadline now) {
    const Dialer::Status status = dialer_->Serve(polls_, now);
    if (status == Dialer::Status::kTrying) return;
    if (status == Dialer::Status::kFailed) throw JoinError({dialer_->error(), dialer_->fault()});
    channel_.emplace(dialer_->Take(), Side::kInitiator);
    dialer_.reset();
    if (!channel_->open()) return Dial(now + kComeBackAfter);
    channel_->KeepAlive();
    channel_->Send(options_.self);
    if (!std::exchange(has_come_, true)) options_.print("waiting as a spare for " + First());
  }

  JoinProblem Unreachable() const {
    return {"cannot reach " + ToString(options_.seed) + " within " + InSeconds(options_.timeout) +
                ": " + (dialer_->error().empty() ? "connection timed out" : dialer_->error()),
            JoinFault::kUnreachable};
  }

  const JoinOptions& options_;
  const RunKey key_;
  Progress progress_;
  Deadline found_by_{};
  std::optional<Dialer> dialer_;
  std::optional<JoinChannel> channel_;
  PollSet polls_;
  bool has_come_ = false;
};

}  // namespace

TakePlace AwaitPlace(const RunKey& key, const JoinOptions& options) {
  JoinOptions all = options;
  if (!all.print) all.print = [](const std::string&) {};
  try {
    return Spare(key, all).Run();
  } catch (const JoinError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw JoinError({error.what()});
  }
}

std::optional<Refusal> RefusalOfSpare(const Hello& first, bool lasting, Hello spare,
                                      const std::string& from) {
  if (!lasting) return Refusal{{"this job does not go on after a loss (--restarts)"}};
  spare.process = first.num_processes - 1;  // as any other
  const auto problem = FindMismatch(first, {{std::move(spare), from}});
  if (!problem) return std::nullopt;
  return Refusal{*problem};
}

}  // namespace troupe
