#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

#include "cli/doctor/meeting.hpp"
#include "cli/doctor/shared.hpp"
#include "cli/doctor/talk.hpp"

namespace troupe {
namespace {

/// Answers the first process until it ends the meeting.
class Member {
 public:
  Member(const DoctorMember& member, Joined joined)
      : member_(member), joined_(std::move(joined)), first_(joined_.peers.front().control) {
    outcome_.findings = member.own;
  }

  DoctorOutcome Run() {
    try {
      Report();
      while (!ended_) Answer(Receive(first_, Patience()));
    } catch (const std::exception& e) {
      outcome_.findings.push_back(
          Fails("meeting", "lost the first process: " + std::string(e.what()), "see its output"));
    }
    outcome_.fails = outcome_.fails || AnyFailure(outcome_.findings);
    return std::move(outcome_);
  }

 private:
  /// Longest silence: the first process may measure all other processes first, in both directions.
  std::chrono::seconds Patience() const {
    return 2 * kAnswerTime +
           2 * kTransferTime * (1 + kTransferTries) * static_cast<int>(joined_.peers.size());
  }

  void Report() {
    end_ = OpenTransfers(member_, joined_, outcome_.findings);
    const PlaneAddress address = end_ ? end_->plane().address() : PlaneAddress();
    Send(first_, Talk::kReport, {{"findings", outcome_.findings}, {"address", address}});
    outcome_.reported = true;
  }

  void Answer(const TalkMessage& message) {
    switch (message.kind) {
      case Talk::kLook:
        return Look(message.content);
      case Talk::kPing:
        return Pong();
      case Talk::kTake:
        return Take(message.content);
      case Talk::kGive:
        return end_->Send(0, message.content);
      case Talk::kEnd:
        return End(message.content);
      default:
        throw WireError("got a message of kind " + std::to_string(static_cast<int>(message.kind)) +
                        " at the wrong time");
    }
  }

  void Look(const nlohmann::json& look) {
    const std::string token = look.at("token");
    const std::string mark = "p" + std::to_string(member_.self);
    const std::string directory =
        token.empty() ? "" : LookForToken(joined_.roster.run_directory, token, mark);
    auto addresses = look.at("addresses").get<std::vector<PlaneAddress>>();
    std::string error;
    try {
      if (end_ && !addresses.empty()) end_->plane().Connect(std::move(addresses));
    } catch (const std::exception& e) {
      error = e.what();
    }
    Send(first_, Talk::kLooked, {{"directory", directory}, {"connecting", error}});
  }

  void Pong() {
    Send(first_, Talk::kPong,
         {{"wall_ns", WallClockNs()}, {"mtu", PathMtu(joined_.peers.front())}});
  }

  void Take(std::int64_t num_bytes) {
    end_->Post(0, num_bytes);
    Send(first_, Talk::kReady);
    std::string error;
    try {
      end_->Await();
    } catch (const std::runtime_error& e) {
      error = e.what();
    }
    Send(first_, Talk::kGot, error);
    Send(first_, Talk::kChecked, error.empty() && end_->Intact(0));
  }

  void End(bool fails) {
    outcome_.fails = fails;
    ended_ = true;
    if (end_) end_->plane().Leave();
    Send(first_, Talk::kLeft);
    static_cast<void>(ReceiveKind(first_, Talk::kBye, Patience()));
  }

  const DoctorMember& member_;
  Joined joined_;
  Socket& first_;
  std::unique_ptr<TransferEnd> end_;
  DoctorOutcome outcome_;
  bool ended_ = false;
};

}  // namespace

DoctorOutcome AnswerAsMember(const DoctorMember& member, Joined joined) {
  return Member(member, std::move(joined)).Run();
}

}  // namespace troupe
