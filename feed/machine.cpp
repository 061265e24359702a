#include "feed/machine.hpp"

#include <algorithm>
#include <list>
#include <memory>
#include <poll.h>
#include <utility>

#include "cluster/dialer.hpp"
#include "cluster/poll_set.hpp"
#include "feed/preparation.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

using std::chrono::steady_clock;

/// The longest wait of one round of the loop.
constexpr std::chrono::milliseconds kRound{500};
/// Before a lost process is called again.
constexpr std::chrono::milliseconds kAgain{300};
/// Between two lines about what has been done.
constexpr std::chrono::seconds kReport{10};
/// Before the first line about what it waits for; each next one comes after twice the time.
constexpr std::chrono::seconds kFirstLine{2};
constexpr std::chrono::seconds kLongestLine{60};
/// So that a thread has its next sample while the last one travels.
constexpr int kCreditsOfThread = 2;

/// The connection to a process of the job.
struct Link {
  Address place;
  std::int64_t number = 0;  ///< another one for each connection
  std::optional<Dialer> dialer = std::nullopt;
  std::optional<FeedChannel> channel = std::nullopt;
};

class MachineLoop {
 public:
  MachineLoop(const FeedMachineOptions& options, const InputSource& source)
      : options_(options),
        join_key_(FeedJoinKey(options.key)),
        hello_(options.hello),
        preparation_(source, options.threads, wake_up_) {
    hello_.credits = options.threads * kCreditsOfThread;
    links_.push_back({.place = options.first});
    Dial(links_.front(), steady_clock::now());
  }

  JoinProblem Run() {
    while (!end_) Round();
    SayWork(steady_clock::now());
    return *end_;
  }
  bool IsIdle() { return preparation_.IsIdle(); }

 private:
  std::string Job() const { return "the job at " + ToString(options_.first); }
  bool IsFirst(const Link& link) const { return &link == &links_.front(); }

  void Dial(Link& link, Deadline not_before) {
    preparation_.Drop(link.number);
    link.channel.reset();
    link.number = ++num_connections_;
    link.dialer.emplace(join_key_, DialOptions{link.place, Purpose::kFeed, kFeedMachine, kFeedTaker,
                                               0, not_before, options_.tls});
  }
  void Round();
  void Connect(Link& link, Deadline now);
  void Serve(Link& link, Deadline now);
  void Receive(Link& link, const FeedMessage& message);
  void TakePlaces(const std::vector<Address>& places);
  void SendOutcomes();
  /// Says what it waits for, or ends.
  void AwaitJob(Deadline now);
  void ReportWork(Deadline now) {
    if (now >= next_report_) SayWork(now);
  }
  void SayWork(Deadline now);

  const FeedMachineOptions& options_;
  const RunKey join_key_;
  FeedHello hello_;
  WakeUp wake_up_;
  PollSet polls_;
  std::list<Link> links_;           ///< the first is that to process 0
  std::vector<Address> dismissed_;  ///< processes that do not use this machine
  std::int64_t num_connections_ = 0;
  std::optional<JoinProblem> end_;
  Deadline lost_at_ = steady_clock::now();
  Deadline next_line_ = lost_at_ + kFirstLine;
  std::chrono::seconds line_gap_ = kFirstLine;
  Deadline next_report_ = lost_at_ + kReport;
  std::int64_t num_samples_ = 0;
  std::int64_t num_reported_ = 0;
  double mib_ = 0;
  Preparation preparation_;  ///< last: it uses wake_up_
};

void MachineLoop::Round() {
  Deadline until = steady_clock::now() + kRound;
  polls_.Clear();
  polls_.Add(wake_up_.fd(), POLLIN);
  for (const Link& link : links_) {
    if (link.channel) polls_.Add(link.channel->fd(), link.channel->events());
    if (!link.dialer) continue;
    link.dialer->AddTo(polls_);
    until = std::min(until, link.dialer->NextDeadline());
  }
  polls_.Wait(until);
  wake_up_.Clear();
  const Deadline now = steady_clock::now();
  SendOutcomes();
  // A list of places that arrives meanwhile changes what comes after the first.
  for (auto link = links_.begin(); link != links_.end() && !end_; ++link) {
    if (link->dialer) Connect(*link, now);
    if (link->channel) Serve(*link, now);
  }
  if (end_) return;
  AwaitJob(now);
  ReportWork(now);
}

void MachineLoop::Connect(Link& link, Deadline now) {
  switch (link.dialer->Serve(polls_, now)) {
    case Dialer::Status::kTrying:
      return;
    case Dialer::Status::kFailed: {
      const std::string error =
          link.dialer->fault() == JoinFault::kRunKey
              ? ToString(link.place) + " has another key, or takes no samples of feed machines"
              : link.dialer->error();
      if (IsFirst(link)) end_ = JoinProblem{error, link.dialer->fault()};
      if (!IsFirst(link)) options_.print(error);
      return link.dialer.reset();
    }
    case Dialer::Status::kConnected:
      break;
  }
  link.channel.emplace(link.dialer->Take(), Side::kInitiator);
  link.dialer.reset();
  link.channel->KeepAlive();
  link.channel->Send(hello_);
}

void MachineLoop::Serve(Link& link, Deadline now) {
  link.channel->Serve();
  while (link.channel && !end_) {
    const auto message = link.channel->Next();
    if (!message) break;
    Receive(link, *message);
  }
  if (!link.channel || end_) return;
  if (link.channel->stuck(now) > kFeedLostAfter) link.channel->Close("nothing arrives there");
  if (link.channel->open()) return;
  if (IsFirst(link)) {
    lost_at_ = now;
    line_gap_ = kFirstLine;
    next_line_ = now + kFirstLine;
  }
  Dial(link, now + kAgain);
}

void MachineLoop::Receive(Link& link, const FeedMessage& message) {
  if (const auto* const order = std::get_if<FeedOrder>(&message)) {
    preparation_.Add(link.number, *order);
  } else if (const auto* const all = std::get_if<FeedPlaces>(&message)) {
    if (IsFirst(link)) TakePlaces(all->places);
  } else if (const auto* const end = std::get_if<FeedEnd>(&message)) {
    if (IsFirst(link)) {
      end_ = end->problem;
      return;
    }
    const JoinFault fault = end->problem.fault;
    if (fault != JoinFault::kDone && fault != JoinFault::kEnded) options_.print(end->problem.text);
    preparation_.Drop(link.number);
    dismissed_.push_back(link.place);
    link.channel.reset();
  } else {
    link.channel->Close("it sent a message that only a feed machine sends");
  }
}

void MachineLoop::TakePlaces(const std::vector<Address>& places) {
  if (lost_at_ != Deadline::max()) options_.print("preparing samples for " + Job());
  lost_at_ = Deadline::max();
  const auto first = links_.begin();
  for (auto link = std::next(first); link != links_.end();) {
    const auto next = std::next(link);
    if (std::ranges::find(places, link->place) == places.end()) {
      preparation_.Drop(link->number);
      links_.erase(link);
    }
    link = next;
  }
  for (const Address& place : places) {
    if (std::ranges::find(dismissed_, place) != dismissed_.end()) continue;
    auto link = std::ranges::find(links_, place, &Link::place);
    if (link == links_.end()) link = links_.insert(links_.end(), Link{.place = place});
    if (!link->channel && !link->dialer) Dial(*link, steady_clock::now());
  }
}

void MachineLoop::SendOutcomes() {
  for (Preparation::Outcome& outcome : preparation_.TakeOutcomes()) {
    const auto link = std::ranges::find(links_, outcome.link, &Link::number);
    if (link == links_.end() || !link->channel) continue;  // it has gone, and asks another
    FeedChannel& channel = *link->channel;
    if (const auto* const failure = std::get_if<FeedFailure>(&outcome.result)) {
      options_.print(failure->text);
      channel.Send(*failure);
      continue;
    }
    const auto& [header, sample] = std::get<Preparation::Prepared>(outcome.result);
    channel.Send(header);
    const std::span<const std::byte> all(sample.data(), sample.num_bytes());
    for (std::size_t sent = 0; sent < all.size(); sent += kFeedPiece) {
      const auto piece = all.subspan(sent, std::min(kFeedPiece, all.size() - sent));
      channel.Send(FeedBytes{{piece.begin(), piece.end()}});
    }
    ++num_samples_;
    mib_ += static_cast<double>(all.size()) / (1 << 20);
  }
}

void MachineLoop::AwaitJob(Deadline now) {
  if (lost_at_ == Deadline::max()) return;
  const auto& dialer = links_.front().dialer;
  const std::string why = !dialer || dialer->error().empty() ? "" : " (" + dialer->error() + ")";
  if (options_.patience && now - lost_at_ > *options_.patience) {
    end_ = {
        Job() + " has not come within " + std::to_string(options_.patience->count()) + " s" + why,
        JoinFault::kAbsent};
    return;
  }
  if (now < next_line_) return;
  options_.print("waiting for " + Job() + why);
  line_gap_ = std::min(2 * line_gap_, kLongestLine);
  next_line_ = now + line_gap_;
}

void MachineLoop::SayWork(Deadline now) {
  const double seconds = std::chrono::duration<double>(now - next_report_ + kReport).count();
  next_report_ = now + kReport;
  if (num_samples_ == num_reported_) return;
  const auto done = static_cast<double>(num_samples_ - std::exchange(num_reported_, num_samples_));
  options_.print(Counted(num_samples_, "sample") + " prepared, " + Fixed(done / seconds, 1) +
                 "/s, " + Fixed(mib_, mib_ < 10 ? 1 : 0) + " MiB in all");
}

}  // namespace

JoinProblem RunFeedMachine(const FeedMachineOptions& options, const InputSource& source) {
  auto loop = std::make_unique<MachineLoop>(options, source);
  JoinProblem end = loop->Run();
  if (!loop->IsIdle()) static_cast<void>(loop.release());  // a thread may be stuck at a disk
  return end;
}

}  // namespace troupe
