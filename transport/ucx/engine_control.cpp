// The active messages of UcxEngine: pulls, refusals and returned weight.
#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/ucx/engine.hpp"
#include "transport/ucx/engine_state.hpp"

namespace troupe {
namespace {

/// Messages that may arrive before Connect(): enough for all peers' hellos and first requests.
constexpr std::size_t kMaxEarly = 4096;

}  // namespace

void UcxEngine::SendPull(ControlKind kind, const PullRequest& request, ProcessId to) {
  ControlMessage message;
  message.kind = kind;
  message.key = request.key;
  message.offset = request.offset;
  message.num_bytes = request.num_bytes;
  message.number = request.number;
  SendControl(to, message);
}

void UcxEngine::RequestSlice(const PullRequest& request, ProcessId home) {
  SendPull(ControlKind::kPull, request, home);
}

void UcxEngine::Refuse(const PullRequest& request) {
  SendPull(ControlKind::kRefused, request, request.from);
}

void UcxEngine::Return(ProcessId home, std::uint64_t key, std::uint64_t weight) {
  ControlMessage message;
  message.kind = ControlKind::kReturn;
  message.key = key;
  message.number = weight;
  SendControl(home, message);
}

void UcxEngine::SendControl(ProcessId to, ControlMessage message) {
  if (!connected_ || closing_ || !abort_cause_.empty() || !PeerAt(to).failure.empty()) return;
  PostControl(to, message);
}

void UcxEngine::PostControl(ProcessId to, ControlMessage message) {
  message.from = options_.self;
  message.to = to;
  message.counter = ++control_counter_;
  message.mac = key_.Sign(WirePurpose::kControl, message.counter, SignedPart(message), {});
  auto posting = std::make_unique<Posting>(*this, message);
  Posting& open = *posting;
  posting_.emplace(&open, std::move(posting));
  PeerAt(to).endpoint->SendMessage(open.request, kControlId,
                                   std::as_bytes(std::span(&open.message, 1)));
  if (!open.request.open()) EndControl(open);
}

void UcxEngine::EndControl(Posting& posting) {
  // If a message cannot be sent, its endpoint has failed, and the endpoint's handler reports it.
  if (posting.message.kind == ControlKind::kHelloAck && posting.request.status() == UCS_OK) {
    PeerAt(posting.message.to).settled = true;
    ++counters_->peers_connected;
  }
  const auto found = posting_.find(&posting);
  retired_posting_.push_back(std::move(found->second));
  posting_.erase(found);
}

void UcxEngine::AnswerHello(ProcessId from) {
  Peer& peer = PeerAt(from);
  if (peer.hello_received || peer.endpoint->closed()) return;
  peer.hello_received = true;
  ControlMessage ack;
  ack.kind = ControlKind::kHelloAck;
  PostControl(from, ack);  // also while closing, which waits for it
}

void UcxEngine::OnControl(std::span<const std::byte> bytes) {
  ControlMessage message;
  if (bytes.size() != sizeof message || (!connected_ && early_.size() == kMaxEarly)) {
    ++counters_->strangers;
    return;
  }
  std::memcpy(&message, bytes.data(), sizeof message);
  if (connected_) {
    Handle(message);
  } else {
    early_.push_back(message);
  }
}

void UcxEngine::Handle(const ControlMessage& message) {
  const auto is_peer = [&] {
    return message.from >= 0 && message.from < static_cast<ProcessId>(peers_.size()) &&
           peers_[static_cast<std::size_t>(message.from)] != nullptr;
  };
  const bool possible = message.magic == kWireMagic && message.to == options_.self && is_peer();
  // Even if the peer has another secret: the answer only concerns UCX's state of the endpoint.
  if (possible && message.kind == ControlKind::kHello) AnswerHello(message.from);
  const bool known = possible &&
                     PeerAt(message.from)
                         .key->Verify(message.mac, WirePurpose::kControl, message.counter,
                                      SignedPart(message), {}) &&
                     PeerAt(message.from).window.Accept(message.counter);
  if (!known) {
    ++counters_->strangers;
    return;
  }
  switch (message.kind) {
    case ControlKind::kHello:
    case ControlKind::kHelloAck:
      return;
    case ControlKind::kPull:
      return HandlePull(
          {message.from, message.key, message.offset, message.num_bytes, message.number});
    case ControlKind::kRefused:
      return HandleRefusal(message);
    case ControlKind::kReturn:
      return HandleReturn(message.from, message.key, message.number);
  }
}

void UcxEngine::HandleRefusal(const ControlMessage& message) {
  Peer& peer = PeerAt(message.from);
  const auto found = peer.receiving.find(
      peer.key->Tag(WirePurpose::kPayload, options_.self, {kPullStream, message.number}));
  if (found == peer.receiving.end()) return;
  Receiving& receiving = *found->second;
  Fail(receiving,
       RefusalText(receiving.reception.what, peer.name,
                   {message.from, message.key, message.offset, message.num_bytes, message.number}));
  Advance(receiving);
}

}  // namespace troupe
