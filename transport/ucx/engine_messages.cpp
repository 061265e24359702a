// Sends and receives of UcxEngine.
#include <algorithm>
#include <utility>

#include "transport/ucx/engine.hpp"
#include "transport/ucx/engine_state.hpp"

namespace troupe {
namespace {

std::span<std::byte> SpanOf(const Buffer& buffer) { return {buffer.data(), buffer.num_bytes()}; }

std::string CheckErrorPrefix(const Reception& reception, const std::string& peer) {
  return reception.what + ": the slice from " + peer + " failed its check ";
}

Failure ReceiveFailure(const Reception& reception, const std::string& peer, ucs_status_t status) {
  return {reception.what + ": receiving from " + peer + " failed: " + ucs_status_string(status),
          FailureKind::kLost};
}

}  // namespace

void UcxEngine::Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) {
  Peer& peer = PeerAt(to);
  if (closing_ || !abort_cause_.empty() || !peer.failure.empty()) return;
  auto owned = std::make_unique<Sending>(*this, to, std::move(buffer), std::move(sent));
  Sending& sending = *owned;
  sending_.emplace(&sending, std::move(owned));
  const std::span<const std::byte> bytes = SpanOf(sending.buffer);
  if (options_.verify != Verify::kOff) {
    MessageHeader& header = sending.header;
    header.verify = options_.verify;
    header.from = options_.self;
    header.to = to;
    header.stream = label.stream;
    header.sequence = label.sequence;
    header.num_bytes = bytes.size();
    header.counter = ++header_counter_;
    header.mac = key_.Sign(WirePurpose::kHeader, header.counter, SignedPart(header),
                           options_.verify == Verify::kPayload ? bytes : bytes.first(0));
    peer.endpoint->Send(sending.head, std::as_bytes(std::span(&header, 1)),
                        key_.Tag(WirePurpose::kHeader, to, label));
  }
  peer.endpoint->Send(sending.payload, bytes, key_.Tag(WirePurpose::kPayload, to, label));
  AdvanceSend(sending);
}

void UcxEngine::AdvanceSend(Sending& sending) {
  if (sending.open() || sending.retired) return;
  sending.retired = true;
  const auto found = sending_.find(&sending);
  retired_sending_.push_back(std::move(found->second));
  sending_.erase(found);

  const bool good = sending.payload.status() == UCS_OK && sending.head.status() == UCS_OK;
  if (!good) {
    quarantine_.push_back(std::move(sending.buffer));
    const ucs_status_t status =
        sending.payload.status() != UCS_OK ? sending.payload.status() : sending.head.status();
    pump_.Post([this, to = sending.to, status] { PeerFailed(to, ConnectionFailure(status)); });
    return;
  }
  counters_->bytes_sent += sending.buffer.num_bytes();
  ++counters_->messages_sent;
  sending.buffer = Buffer();  // before `sent`, which may look at its use_count()
  if (sending.sent && abort_cause_.empty()) sending.sent();
}

Failure UcxEngine::ReceiveError(const Peer& peer, const Reception& reception) const {
  return ReceiveError(peer.name, peer.failure, reception);
}

void UcxEngine::Receive(Reception reception) {
  Peer& peer = PeerAt(reception.from);
  Failure refusal = ReceiveError(peer, reception);
  const std::uint64_t tag = peer.key->Tag(WirePurpose::kPayload, options_.self, reception.label);
  if (refusal.empty() && peer.receiving.contains(tag)) {
    refusal = reception.what + ": expected a label that is not open, got one that waits for " +
              peer.receiving.at(tag)->reception.what;
  }
  if (!refusal.empty()) {
    reception.failed(refusal);
    return;
  }
  auto owned = std::make_unique<Receiving>(*this, std::move(reception));
  Receiving& receiving = *owned;
  receiving.tag = tag;
  peer.receiving.emplace(tag, std::move(owned));
  worker_.Receive(receiving.payload, SpanOf(receiving.reception.destination), tag,
                  receiving.reception.destination.on_host());
  if (options_.verify != Verify::kOff) {
    worker_.Receive(receiving.head, std::as_writable_bytes(std::span(&receiving.header, 1)),
                    peer.key->Tag(WirePurpose::kHeader, options_.self, receiving.reception.label));
  }
  Advance(receiving);
}

void UcxEngine::Advance(Receiving& receiving) {
  if (receiving.retired) return;
  if (receiving.failure.empty()) Inspect(receiving);
  if (receiving.retired || receiving.open()) return;  // Cancel may have called this function
  Report(receiving);
  Retire(receiving);
}

void UcxEngine::Inspect(Receiving& receiving) {
  const Reception& reception = receiving.reception;
  const std::string& name = PeerAt(reception.from).name;
  if (!receiving.payload.open()) {
    const ucs_status_t status = receiving.payload.status();
    const std::size_t expected = reception.destination.num_bytes();
    const std::size_t length = receiving.payload.length();
    if (status == UCS_ERR_MESSAGE_TRUNCATED || (status == UCS_OK && length != expected)) {
      return Fail(receiving, {CheckErrorPrefix(reception, name) + "(header): expected " +
                                  std::to_string(expected) + " bytes, got " +
                                  (status == UCS_OK ? std::to_string(length) : "more"),
                              FailureKind::kCheck});
    }
    if (status != UCS_OK) return Fail(receiving, ReceiveFailure(reception, name, status));
  }
  if (options_.verify != Verify::kOff && !receiving.head.open()) InspectHeader(receiving);
}

void UcxEngine::InspectHeader(Receiving& receiving) {
  const Reception& reception = receiving.reception;
  Peer& peer = PeerAt(reception.from);
  const MessageHeader& header = receiving.header;
  const auto fail = [&](const std::string& text) {
    Fail(receiving, {CheckErrorPrefix(reception, peer.name) + text, FailureKind::kCheck});
  };
  const ucs_status_t status = receiving.head.status();
  if (status != UCS_OK && status != UCS_ERR_MESSAGE_TRUNCATED)
    return Fail(receiving, ReceiveFailure(reception, peer.name, status));
  const bool matches = status == UCS_OK && receiving.head.length() == sizeof header &&
                       header.magic == kWireMagic && header.verify == options_.verify &&
                       header.from == reception.from && header.to == options_.self &&
                       header.stream == reception.label.stream &&
                       header.sequence == reception.label.sequence;
  if (!matches) return fail("(header): it is not the header of this message");
  if (header.num_bytes != reception.destination.num_bytes()) {
    return fail("(header): expected " + std::to_string(reception.destination.num_bytes()) +
                " bytes, it announces " + std::to_string(header.num_bytes));
  }
  std::span<const std::byte> body;
  if (options_.verify == Verify::kPayload) {
    if (receiving.payload.open()) return;
    body = SpanOf(reception.destination);
  } else if (std::exchange(receiving.inspected_head, true)) {
    return;
  }
  if (!peer.key->Verify(header.mac, WirePurpose::kHeader, header.counter, SignedPart(header),
                        body)) {
    fail(std::string(options_.verify == Verify::kPayload ? "(payload)" : "(header)") +
         ": its MAC is wrong");
  }
}

void UcxEngine::Fail(Receiving& receiving, const Failure& failure) {
  if (!receiving.failure.empty() || receiving.retired) return;
  receiving.failure = failure;
  receiving.deadline = Clock::now() + kGrace;
  dying_.push_back(&receiving);
  worker_.Cancel(receiving.payload);
  worker_.Cancel(receiving.head);
}

void UcxEngine::FailAll(Peer& peer, const std::function<Failure(const Reception&)>& failure) {
  std::vector<Receiving*> all;  // alive until the end of the round
  for (const auto& [tag, receiving] : peer.receiving) all.push_back(receiving.get());
  for (Receiving* receiving : all) {
    Fail(*receiving, failure(receiving->reception));
    Advance(*receiving);
  }
}

void UcxEngine::Report(Receiving& receiving) {
  if (std::exchange(receiving.reported, true)) return;
  Reception& reception = receiving.reception;
  const auto received = std::exchange(reception.received, nullptr);
  const auto failed = std::exchange(reception.failed, nullptr);
  if (!receiving.failure.empty()) return failed(receiving.failure);
  counters_->bytes_received += reception.destination.num_bytes();
  ++counters_->messages_received;
  received();
}

void UcxEngine::Retire(Receiving& receiving) {
  receiving.retired = true;
  auto& table = PeerAt(receiving.reception.from).receiving;
  const auto found = table.find(receiving.tag);
  retired_receiving_.push_back(std::move(found->second));
  table.erase(found);
}

}  // namespace troupe
