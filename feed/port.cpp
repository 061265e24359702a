#include "feed/port.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <poll.h>
#include <utility>

#include "cluster/hello_check.hpp"
#include "cluster/signals_blocked.hpp"

namespace troupe {
namespace {

using std::chrono::steady_clock;

/// Time for a machine that has proven the key to send its Hello.
constexpr std::chrono::milliseconds kHelloTime{5000};
/// Time for machines to read how the job has ended.
constexpr std::chrono::milliseconds kFarewell{1000};
constexpr int kMostCredits = 4096;
constexpr std::size_t kMostVisitors = 512;
/// Of lines about machines.
constexpr int kMostLines = 1000;
constexpr std::size_t kMostLetters = 500;
constexpr std::size_t kLongestName = 64;

/// The most bytes that a prepared sample may have. Tickets state about how many it has.
std::int64_t MostBytes(const SampleTicket& ticket) {
  return 4 * ticket.bytes + static_cast<std::int64_t>(kLargestPayload);
}

bool IsName(const std::string& name) {
  const auto is_legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, is_legal);
}

}  // namespace

/// Actors ask it on their threads, and the port's thread sends and receives.
class FeedPort::Machine : public FeedMachine {
 public:
  Machine(const FeedHello& hello, std::shared_ptr<WakeUp> wake_up)
      : name_(hello.name),
        credits_(std::clamp(static_cast<int>(hello.credits), 1, kMostCredits)),
        wake_up_(std::move(wake_up)) {}

  const std::string& name() const override { return name_; }
  int credits() const override { return credits_; }
  void Watch(std::function<void()> gone) override {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kGone) return gone();
    if (state_ == State::kHere) gone_ = std::move(gone);
  }
  void Ask(std::int64_t microbatch, const SampleTicket& ticket,
           std::function<void(const MachineSample&)> prepared) override {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kHere) return;
    const std::int64_t number = next_++;
    orders_.push_back({number, microbatch, ticket});
    asked_[number] = {MostBytes(ticket), std::move(prepared)};
    wake_up_->Signal();
  }
  void SetLate(bool is_late) override {
    is_late_ = is_late;
    wake_up_->Signal();
  }
  void Dismiss(const std::string& why) override {
    const std::lock_guard lock(mutex_);
    if (!dismissal_) dismissal_ = why;
    wake_up_->Signal();
  }

  // For the port's thread.

  std::deque<FeedOrder> TakeOrders() {
    const std::lock_guard lock(mutex_);
    return std::exchange(orders_, {});
  }
  bool is_late() const { return is_late_; }
  std::optional<std::string> dismissal() {
    const std::lock_guard lock(mutex_);
    return dismissal_;
  }
  void Begin(const FeedSample& header) {
    const std::lock_guard lock(mutex_);
    const auto asked = asked_.find(header.number);
    if (coming_ || asked == asked_.end()) {
      throw WireError("it sent a sample that it was not asked for");
    }
    if (header.size < 0 || header.size > asked->second.most_bytes) {
      throw WireError("it sent a sample of " + std::to_string(header.size) +
                      " bytes, expected at most " + std::to_string(asked->second.most_bytes));
    }
    coming_ = MachineSample{Buffer::AllocateBytes(static_cast<std::size_t>(header.size)),
                            {header.read_ns, header.tokenize_ns, header.decode_ns},
                            header.queued_ns};
    prepared_ = std::move(asked->second.prepared);
    received_ = 0;
    asked_.erase(asked);
    ReportIfWhole();
  }
  void Add(const std::vector<std::byte>& bytes) {
    const std::lock_guard lock(mutex_);
    if (!coming_ || bytes.size() > coming_->sample.num_bytes() - received_) {
      throw WireError("it sent more bytes than its sample has");
    }
    std::memcpy(coming_->sample.data() + received_, bytes.data(), bytes.size());
    received_ += bytes.size();
    ReportIfWhole();
  }
  void Leave() {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kHere) return;
    state_ = State::kGone;
    if (gone_) std::exchange(gone_, nullptr)();
    DropCalls();
  }
  void Forget() {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kHere) state_ = State::kForgotten;
    gone_ = nullptr;
    DropCalls();
  }
  bool forgotten() {
    const std::lock_guard lock(mutex_);
    return state_ == State::kForgotten;
  }

 private:
  struct Asked {
    std::int64_t most_bytes = 0;
    std::function<void(const MachineSample&)> prepared;
  };

  void ReportIfWhole() {
    if (received_ < coming_->sample.num_bytes()) return;
    const MachineSample sample = *std::exchange(coming_, std::nullopt);
    if (const auto call = std::exchange(prepared_, nullptr)) call(sample);  // none: it is forgotten
  }
  void DropCalls() {
    prepared_ = nullptr;
    asked_.clear();
    orders_.clear();
  }

  const std::string name_;
  const int credits_;
  const std::shared_ptr<WakeUp> wake_up_;
  std::atomic<bool> is_late_{false};
  std::mutex mutex_;  ///< of all below
  std::function<void()> gone_;
  enum class State { kHere, kGone, kForgotten };
  State state_ = State::kHere;
  std::deque<FeedOrder> orders_;         ///< not sent yet
  std::map<std::int64_t, Asked> asked_;  ///< by number
  std::int64_t next_ = 0;
  std::optional<std::string> dismissal_;
  std::optional<MachineSample> coming_;
  std::function<void(const MachineSample&)> prepared_;  ///< of `coming_`
  std::size_t received_ = 0;
};

FeedPort::FeedPort(Socket listener, FeedPortOptions options)
    : options_(std::move(options)),
      acceptor_(std::move(listener), FeedJoinKey(options_.key), kFeedTaker, options_.print,
                options_.tls, {}, "the key of feed machines"),
      address_(acceptor_.address()) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
}

FeedPort::~FeedPort() {
  closing_ = true;
  wake_up_->Signal();
  if (thread_.joinable()) thread_.join();
}

void FeedPort::Tell(std::vector<Address> places) {
  const std::lock_guard lock(mutex_);
  places_ = std::move(places);
  ++num_lists_;
  wake_up_->Signal();
}

void FeedPort::Listen(std::function<void(std::shared_ptr<FeedMachine>)> came) {
  const std::lock_guard lock(mutex_);
  came_ = std::move(came);
  listens_ = true;
  for (const auto& machine : machines_) came_(machine);
  wake_up_->Signal();
}

void FeedPort::Forget() {
  const std::lock_guard lock(mutex_);
  came_ = nullptr;
  listens_ = false;
  for (const auto& machine : machines_) machine->Forget();
  machines_.clear();
}

void FeedPort::End(const JoinProblem& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!end_) end_ = why;
  }
  wake_up_->Signal();
  if (thread_.joinable()) thread_.join();
}

void FeedPort::Run() {
  const auto ended = [this] {
    const std::lock_guard lock(mutex_);
    return end_;
  };
  try {
    while (!closing_ && !ended()) Round();
    acceptor_.ReportTotal();
    if (const auto why = ended()) {
      for (Visitor& visitor : visitors_) Dismiss(visitor, *why);
      const Deadline until = steady_clock::now() + kFarewell;
      while (!visitors_.empty() && steady_clock::now() < until) Round();
    }
  } catch (const std::exception& error) {
    options_.print(std::string("no more feed machines can come: ") + error.what());
  }
  for (Visitor& visitor : visitors_) Leave(visitor, "");
  visitors_.clear();
}

void FeedPort::Round() {
  Deadline now = steady_clock::now();
  polls_.Clear();
  polls_.Add(wake_up_->fd(), POLLIN);
  acceptor_.AddTo(polls_, now);
  Deadline until = acceptor_.NextDeadline(now);
  for (const Visitor& visitor : visitors_) {
    polls_.Add(visitor.channel.fd(), visitor.channel.events());
    if (!visitor.machine) until = std::min(until, visitor.until);
  }
  polls_.Wait(until);
  wake_up_->Clear();
  now = steady_clock::now();
  for (Visitor& visitor : visitors_) Serve(visitor, now);
  visitors_.remove_if([](const Visitor& visitor) { return !visitor.channel.open(); });
  for (Arrival& arrival : acceptor_.Serve(polls_, now)) {
    if (!arrival.problem.empty()) Say("a feed machine was refused: " + arrival.problem);
    if (!arrival.connection || arrival.other.purpose != Purpose::kFeed) continue;
    if (visitors_.size() >= kMostVisitors) {
      Say("a feed machine was refused: there are " + std::to_string(kMostVisitors));
      continue;
    }
    visitors_.push_back(
        {FeedChannel(*std::move(arrival.connection), Side::kAcceptor), now + kHelloTime});
    visitors_.back().channel.KeepAlive();
  }
}

void FeedPort::Serve(Visitor& visitor, Deadline now) {
  FeedChannel& channel = visitor.channel;
  Forward(visitor);
  channel.Serve();  // once: what a second call reads would wait for the next round
  try {
    while (const auto message = channel.Next()) {
      if (!visitor.over) Receive(visitor, *message);
    }
  } catch (const WireError& error) {
    Dismiss(visitor, {error.what()});
  }
  const bool is_forgotten = visitor.machine && visitor.machine->forgotten();
  if (is_forgotten && listens_) channel.Close("the job has met again");
  if (channel.stuck(now) > kFeedLostAfter) channel.Close("nothing arrives there");
  if (!visitor.machine && now >= visitor.until) channel.Close("its time is over");
  if (!channel.open()) Leave(visitor, channel.end());
}

void FeedPort::Receive(Visitor& visitor, const FeedMessage& message) {
  if (const auto* const hello = std::get_if<FeedHello>(&message)) return Welcome(visitor, *hello);
  if (!visitor.machine) throw WireError("it sent another message before its Hello");
  if (visitor.machine->forgotten()) return;
  if (const auto* const sample = std::get_if<FeedSample>(&message)) {
    visitor.machine->Begin(*sample);
  } else if (const auto* const piece = std::get_if<FeedBytes>(&message)) {
    visitor.machine->Add(piece->bytes);
  } else if (const auto* const failure = std::get_if<FeedFailure>(&message)) {
    // Either its files are other than here, or a worker of this process will find the same fault.
    Dismiss(visitor, {"it cannot prepare a sample: " + failure->text});
  } else {
    throw WireError("it sent a message that only a job sends");
  }
}

void FeedPort::Welcome(Visitor& visitor, const FeedHello& hello) {
  if (visitor.machine) throw WireError("it sent two Hellos");
  if (!IsName(hello.name)) throw WireError("its name has other characters than a host's");
  visitor.name = hello.name;
  const std::string from = visitor.channel.peer_address().host;
  if (hello.build != options_.build) {
    return Dismiss(visitor, {"it is built from " + hello.build + ", the job from " + options_.build,
                             JoinFault::kBuild});
  }
  if (hello.facts != options_.facts) {
    return Dismiss(visitor, {"its samples would differ: " +
                             DescribeDifferences(hello.facts, options_.facts, "the job")});
  }
  visitor.machine = std::make_shared<Machine>(hello, wake_up_);
  if (options_.leads) {
    Say("feed machine " + hello.name + " has come from " + from + " (pid " +
        std::to_string(hello.pid) + ")");
  }
  wake_up_->Signal();  // it waits for the list of places
  const std::lock_guard lock(mutex_);
  machines_.push_back(visitor.machine);
  if (came_) came_(visitor.machine);
}

void FeedPort::Forward(Visitor& visitor) {
  if (!visitor.machine || visitor.over) return;
  if (const auto why = visitor.machine->dismissal()) return Dismiss(visitor, {*why});
  for (const FeedOrder& order : visitor.machine->TakeOrders()) visitor.channel.Send(order);
  const bool is_late = visitor.machine->is_late();
  if (std::exchange(visitor.was_late, is_late) != is_late) {
    Say("feed machine " + visitor.name +
        (is_late ? " is late with its samples; it gets no others until it answers"
                 : " answers again"));
  }
  if (!options_.leads) return;
  const std::lock_guard lock(mutex_);
  if (std::exchange(visitor.told, num_lists_) != num_lists_) {
    visitor.channel.Send(FeedPlaces{places_});
  }
}

void FeedPort::Dismiss(Visitor& visitor, const JoinProblem& why) {
  if (std::exchange(visitor.over, true)) return;
  const bool is_end = why.fault == JoinFault::kDone || why.fault == JoinFault::kEnded;
  if (!is_end) {
    const std::string name = visitor.name.empty() ? "" : " " + visitor.name;
    Say("feed machine" + name + " (" + visitor.channel.peer_address().host +
        ") is not used: " + why.text);
  }
  visitor.channel.Send(FeedEnd{why});
  visitor.channel.Serve();
  visitor.until = steady_clock::now() + kFarewell;
  Leave(visitor, "");
}

void FeedPort::Say(std::string line) {
  if (++num_lines_ > kMostLines) return;
  if (line.size() > kMostLetters) line.resize(kMostLetters);
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  options_.print(line);
  if (num_lines_ == kMostLines) options_.print("no more lines about feed machines");
}

void FeedPort::Leave(Visitor& visitor, const std::string& why) {
  if (!visitor.machine) return;
  const auto machine = std::exchange(visitor.machine, nullptr);
  if (!why.empty() && options_.leads && !machine->forgotten()) {
    Say("feed machine " + machine->name() + " has gone: " + why);
  }
  const std::lock_guard lock(mutex_);  // Forget may end the actors that it calls
  std::erase(machines_, machine);
  machine->Leave();
}

}  // namespace troupe
