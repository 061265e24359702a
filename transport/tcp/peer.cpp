#include "transport/tcp/peer.hpp"

#include <cstring>
#include <utility>

namespace troupe {
namespace {

std::span<std::byte> SpanOf(const Buffer& buffer) { return {buffer.data(), buffer.num_bytes()}; }

Frame FrameOf(FrameKind kind, const Label& label, std::uint64_t total) {
  Frame frame;
  frame.kind = kind;
  frame.stream = label.stream;
  frame.sequence = label.sequence;
  frame.total = total;
  return frame;
}

Frame FrameOf(FrameKind kind, const PullRequest& request) {
  Frame frame = FrameOf(kind, {request.key, request.number}, request.num_bytes);
  frame.offset = static_cast<std::uint64_t>(request.offset);
  return frame;
}

PullRequest RequestOf(ProcessId from, const Frame& frame) {
  return {from, frame.stream, static_cast<std::int64_t>(frame.offset), frame.total, frame.sequence};
}

[[noreturn]] void Fault(const Frame& frame, const std::string& text) {
  throw FrameError("frame " + std::to_string(frame.counter) + ": " + text);
}

template <class Table>
void CheckRoom(const Table& table, const Frame& frame) {
  if (table.size() >= kMostOpen)
    Fault(frame, "expected at most " + std::to_string(kMostOpen) + " open messages, got more");
}

}  // namespace

std::size_t TcpPeer::LabelHash::operator()(const Label& label) const {
  return static_cast<std::size_t>(
      (label.stream ^ (label.sequence * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu >> 7);
}

TcpPeer::TcpPeer(ProcessId process, std::string name, FrameWriter& out, PlaneCounters& counters,
                 PeerRequests requests)
    : process_(process),
      name_(std::move(name)),
      out_(out),
      counters_(counters),
      requests_(std::move(requests)) {}

void TcpPeer::Send(OutMessage message) {
  const std::uint64_t size = message.buffer.num_bytes();
  if (message.label.stream == kPullStream) return out_.PutPieces(std::move(message));
  if (const auto ready = ready_.find(message.label); ready != ready_.end()) {
    const bool fits = ready->second == size;
    ready_.erase(ready);
    if (fits) return out_.PutPieces(std::move(message));
  } else if (size <= kEarlyBytes &&
             early_sent_ - early_acknowledged_ + CostOf(size) <= kEarlyBudget) {
    early_sent_ += CostOf(size);
    if (size > kSmallBytes) sent_.insert_or_assign(message.label, size);
    return out_.PutEarly(std::move(message));
  }
  Announce(message);
  const Label label = message.label;
  waiting_.insert_or_assign(label, std::move(message));
}

void TcpPeer::Announce(const OutMessage& message) {
  out_.Put(FrameOf(FrameKind::kAnnounce, message.label, message.buffer.num_bytes()));
}

void TcpPeer::Receive(Reception reception) {
  const Label label = reception.label;
  const std::uint64_t size = reception.destination.num_bytes();
  if (const auto open = receiving_.find(label); open != receiving_.end()) {
    return reception.failed(reception.what +
                            ": expected a label that is not open, got one that "
                            "waits for " +
                            open->second.reception.what);
  }
  const auto early = early_.extract(label);
  const auto announced = announced_.extract(label);
  Receiving& receiving = receiving_[label];
  receiving.reception = std::move(reception);
  const bool fits = announced.empty() || announced.mapped() == size;
  if (label.stream != kPullStream && fits && (size > kSmallBytes || !announced.empty()))
    SendReady(receiving);
  if (!early.empty()) {
    const std::uint64_t got = early.mapped().num_bytes();
    EarlyReceived(got);
    if (got != size) return FailSize(label, got);
    if (size > 0) std::memcpy(receiving.reception.destination.data(), early.mapped().data(), size);
    return Complete(label);
  }
  if (!fits) FailSize(label, announced.mapped());
}

void TcpPeer::SendReady(Receiving& receiving) {
  if (std::exchange(receiving.ready, true)) return;
  out_.Put(FrameOf(FrameKind::kReady, receiving.reception.label,
                   receiving.reception.destination.num_bytes()));
}

void TcpPeer::RequestPull(const PullRequest& request) {
  out_.Put(FrameOf(FrameKind::kPull, request));
}

void TcpPeer::Refuse(const PullRequest& request) {
  out_.Put(FrameOf(FrameKind::kRefused, request));
}

void TcpPeer::Return(std::uint64_t key, std::uint64_t weight) {
  out_.Put(FrameOf(FrameKind::kReturn, {key, weight}, 0));
}

void TcpPeer::FailAll(const std::function<Failure(const Reception&)>& failure) {
  early_.clear();
  announced_.clear();
  waiting_.clear();
  ready_.clear();
  sent_.clear();
  arriving_.clear();
  while (!receiving_.empty()) {
    const Reception& first = receiving_.begin()->second.reception;
    Fail(Label(first.label), failure(first));
  }
}

std::span<std::byte> TcpPeer::BeginFrame(const Frame& frame) {
  if (frame.kind == FrameKind::kEarly) return BeginEarly(frame);
  if (frame.kind == FrameKind::kPiece) return BeginPiece(frame);
  return {};
}

std::span<std::byte> TcpPeer::BeginEarly(const Frame& frame) {
  const Label label = LabelOf(frame);
  const auto [found, begins] = arriving_.try_emplace(label);
  Arriving& arriving = found->second;
  if (begins) BeginArriving(frame, arriving);
  if (frame.total != arriving.total || frame.offset != arriving.received) {
    Fault(frame, "expected byte " + std::to_string(arriving.received) + " of " +
                     std::to_string(arriving.total) + " of an early message, got byte " +
                     std::to_string(frame.offset) + " of " + std::to_string(frame.total));
  }
  if (arriving.place == Arriving::Place::kUnwanted) {
    unwanted_.resize(frame.num_bytes);
    return unwanted_;
  }
  if (arriving.place == Arriving::Place::kKept)
    return SpanOf(arriving.kept).subspan(frame.offset, frame.num_bytes);
  const auto open = receiving_.find(label);
  if (open == receiving_.end()) Fault(frame, "got bytes of a message that has been received");
  return SpanOf(open->second.reception.destination).subspan(frame.offset, frame.num_bytes);
}

/// Chooses the destination of an early message.
void TcpPeer::BeginArriving(const Frame& frame, Arriving& arriving) {
  const Label label = LabelOf(frame);
  arriving.total = frame.total;
  early_arrived_ += CostOf(frame.total);
  if (early_kept() > kEarlyBudget) {
    Fault(frame, "expected at most " + std::to_string(kEarlyBudget) +
                     " bytes before they are received, got more");
  }
  const auto found = receiving_.find(label);
  if (found == receiving_.end()) {
    arriving.place = Arriving::Place::kKept;
    arriving.kept = Buffer::AllocateBytes(frame.total);
  } else if (found->second.reception.destination.num_bytes() == frame.total) {
    arriving.place = Arriving::Place::kDestination;
  } else {
    FailSize(label, frame.total);
    EarlyReceived(frame.total);
  }
}

std::span<std::byte> TcpPeer::BeginPiece(const Frame& frame) {
  const auto found = receiving_.find(LabelOf(frame));
  if (found == receiving_.end()) Fault(frame, "got a piece of a message that is not received");
  const Receiving& receiving = found->second;
  const std::span<std::byte> whole = SpanOf(receiving.reception.destination);
  if (frame.total != whole.size() || frame.offset != receiving.received) {
    Fault(frame, receiving.reception.what + ": expected byte " +
                     std::to_string(receiving.received) + " of " + std::to_string(whole.size()) +
                     ", got byte " + std::to_string(frame.offset) + " of " +
                     std::to_string(frame.total));
  }
  return whole.subspan(frame.offset, frame.num_bytes);
}

void TcpPeer::EndFrame(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kEarly:
      return EndEarly(frame);
    case FrameKind::kPiece:
      return EndPiece(frame);
    case FrameKind::kAnnounce:
      return OnAnnounce(frame);
    case FrameKind::kReady:
      return OnReady(frame);
    case FrameKind::kPull:
      return requests_.pull(RequestOf(process_, frame));
    case FrameKind::kRefused:
      return OnRefused(frame);
    case FrameKind::kReturn:
      return requests_.return_weight(frame.stream, frame.sequence);
    case FrameKind::kCredit:
      return OnCredit(frame);
  }
}

void TcpPeer::EndEarly(const Frame& frame) {
  const Label label = LabelOf(frame);
  Arriving& arriving = arriving_.at(label);
  arriving.received += frame.num_bytes;
  if (arriving.received < frame.total) return;
  const Arriving arrived = std::move(arriving);
  arriving_.erase(label);
  if (arrived.place == Arriving::Place::kUnwanted) return;
  const auto found = receiving_.find(label);
  if (found == receiving_.end()) {
    if (!early_.emplace(label, arrived.kept).second)
      Fault(frame, "got a message for the second time before the first is received");
    return;
  }
  EarlyReceived(frame.total);
  if (arrived.place == Arriving::Place::kKept) {  // posted while the message was arriving
    const Buffer& destination = found->second.reception.destination;
    if (destination.num_bytes() != frame.total) return FailSize(label, frame.total);
    if (frame.total > 0) std::memcpy(destination.data(), arrived.kept.data(), frame.total);
  }
  Complete(label);
}

void TcpPeer::EndPiece(const Frame& frame) {
  Receiving& receiving = receiving_.at(LabelOf(frame));
  receiving.received += frame.num_bytes;
  if (receiving.received == frame.total) Complete(LabelOf(frame));
}

void TcpPeer::SpoiledFrame(const Frame& frame) {
  const std::string text = " failed its check (payload): its MAC is wrong";
  const auto found = receiving_.find(LabelOf(frame));
  if (found != receiving_.end()) {
    Fail(LabelOf(frame),
         {found->second.reception.what + ": the slice from " + name_ + text, FailureKind::kCheck});
  }
  throw FrameError("frame " + std::to_string(frame.counter) + text);
}

void TcpPeer::OnAnnounce(const Frame& frame) {
  const Label label = LabelOf(frame);
  const auto found = receiving_.find(label);
  if (found == receiving_.end()) {
    CheckRoom(announced_, frame);
    announced_.insert_or_assign(label, frame.total);
  } else if (found->second.reception.destination.num_bytes() != frame.total) {
    FailSize(label, frame.total);
  } else {
    SendReady(found->second);
  }
}

void TcpPeer::OnReady(const Frame& frame) {
  if (sent_.erase(LabelOf(frame)) > 0) return;
  const auto found = waiting_.find(LabelOf(frame));
  if (found == waiting_.end()) {
    CheckRoom(ready_, frame);
    ready_.insert_or_assign(LabelOf(frame), frame.total);
  } else if (found->second.buffer.num_bytes() != frame.total) {
    Announce(found->second);  // the receiver will report the wrong size
  } else {
    OutMessage message = std::move(found->second);
    waiting_.erase(found);
    out_.PutPieces(std::move(message));
  }
}

void TcpPeer::OnCredit(const Frame& frame) {
  if (frame.total < early_acknowledged_ || frame.total > early_sent_)
    Fault(frame, "got credit for bytes that were not sent");
  early_acknowledged_ = frame.total;
}

void TcpPeer::OnRefused(const Frame& frame) {
  const PullRequest request = RequestOf(process_, frame);
  const Label label{kPullStream, request.number};
  const auto found = receiving_.find(label);
  if (found == receiving_.end()) return;
  Fail(label, RefusalText(found->second.reception.what, name_, request));
}

void TcpPeer::Complete(const Label& label) {
  auto node = receiving_.extract(label);
  Reception& reception = node.mapped().reception;
  counters_.bytes_received += reception.destination.num_bytes();
  ++counters_.messages_received;
  reception.received();
}

void TcpPeer::Fail(const Label& label, const Failure& failure) {
  auto node = receiving_.extract(label);
  node.mapped().reception.failed(failure);
}

void TcpPeer::FailSize(const Label& label, std::uint64_t got) {
  const Reception& reception = receiving_.at(label).reception;
  Fail(label,
       {reception.what + ": the slice from " + name_ + " failed its check (header): expected " +
            std::to_string(reception.destination.num_bytes()) + " bytes, it announces " +
            std::to_string(got),
        FailureKind::kCheck});
}

void TcpPeer::EarlyReceived(std::uint64_t num_bytes) {
  early_received_ += CostOf(num_bytes);
  if (early_received_ - early_reported_ < kEarlyBudget / 4) return;
  early_reported_ = early_received_;
  out_.Put(FrameOf(FrameKind::kCredit, {}, early_received_));
}

}  // namespace troupe
