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
    const auto address = end_ ? end_->plane().address() : std::vector<std::byte>();
    ByteWriter writer;
    WriteFindings(writer, outcome_.findings);
    writer.U32(static_cast<std::uint32_t>(address.size()));
    writer.Raw(address);
    Send(first_, Talk::kReport, writer.Take());
    outcome_.reported = true;
  }

  void Answer(const TalkMessage& message) {
    ByteReader reader(message.content);
    switch (message.kind) {
      case Talk::kLook:
        return Look(reader);
      case Talk::kPing:
        return Pong();
      case Talk::kTake:
        return Take(reader.I64());
      case Talk::kGive:
        return end_->Send(0, reader.I64());
      case Talk::kEnd:
        return End(reader.U8() != 0);
      default:
        throw WireError("got a message of kind " + std::to_string(static_cast<int>(message.kind)) +
                        " at the wrong time");
    }
  }

  void Look(ByteReader& reader) {
    const std::string token = reader.Text();
    const std::string mark = "p" + std::to_string(member_.self);
    std::vector<std::vector<std::byte>> addresses(reader.U32());
    for (auto& address : addresses) {
      const auto bytes = reader.Raw(reader.U32());
      address.assign(bytes.begin(), bytes.end());
    }
    ByteWriter writer;
    writer.Text(token.empty() ? "" : LookForToken(joined_.roster.run_directory, token, mark));
    std::string error;
    try {
      if (end_ && !addresses.empty()) end_->plane().Connect(std::move(addresses));
    } catch (const std::exception& e) {
      error = e.what();
    }
    writer.Text(error);
    Send(first_, Talk::kLooked, writer.Take());
  }

  void Pong() {
    ByteWriter writer;
    writer.I64(WallClockNs());
    writer.I32(PathMtu(joined_.peers.front()));
    Send(first_, Talk::kPong, writer.Take());
  }

  void Take(std::int64_t num_bytes) {
    end_->Post(0, num_bytes);
    Send(first_, Talk::kReady);
    ByteWriter got;
    std::string error;
    try {
      end_->Await();
    } catch (const std::runtime_error& e) {
      error = e.what();
    }
    got.Text(error);
    Send(first_, Talk::kGot, got.Take());
    ByteWriter checked;
    checked.U8(error.empty() && end_->Intact(0) ? 1 : 0);
    Send(first_, Talk::kChecked, checked.Take());
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
