// Pulls, refusals and returned weight: what UcxEngine says in active messages.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "transport/ucx/engine.hpp"
#include "transport/ucx/engine_state.hpp"

namespace troupe {
namespace {

/// What may wait for Connect(): enough for everybody's hello and first requests.
constexpr std::size_t kMaxEarly = 4096;

}  // namespace

void UcxEngine::Pull(std::uint64_t key, std::int64_t offset, Reception reception) {
  if (reception.destination.num_bytes() <= kSliceBytes)
    return PullSlice(key, offset, std::move(reception));
  const auto slices = std::make_shared<Slices>();
  slices->key = key;
  slices->offset = offset;
  slices->whole = std::move(reception);
  PullNext(slices);
}

void UcxEngine::PullNext(const std::shared_ptr<Slices>& slices) {
  const Buffer& whole = slices->whole.destination;
  while (slices->error.empty() && slices->open < kSlicesInFlight &&
         slices->asked < whole.num_bytes()) {
    const std::size_t size = std::min(kSliceBytes, whole.num_bytes() - slices->asked);
    const auto offset = slices->offset + static_cast<std::int64_t>(slices->asked);
    Reception slice{slices->whole.from,
                    {},
                    BytesOf(whole, slices->asked, size),
                    slices->whole.what,
                    [this, slices] {
                      --slices->open;
                      PullNext(slices);
                    },
                    [this, slices](const std::string& error) {
                      --slices->open;
                      if (slices->error.empty()) slices->error = error;
                      PullNext(slices);
                    }};
    slices->asked += size;
    ++slices->open;
    PullSlice(slices->key, offset, std::move(slice));
  }
  // Not before the last one that is open has ended: then nobody writes into the memory any more.
  if (slices->open > 0) return;
  const auto received = std::exchange(slices->whole.received, nullptr);
  const auto failed = std::exchange(slices->whole.failed, nullptr);
  if (received == nullptr) return;  // said already, by a slice that was refused on the spot
  if (slices->error.empty()) {
    received();
  } else {
    failed(slices->error);
  }
}

void UcxEngine::PullSlice(std::uint64_t key, std::int64_t offset, Reception reception) {
  ControlMessage message;
  message.kind = ControlKind::kPull;
  message.key = key;
  message.offset = offset;
  message.num_bytes = reception.destination.num_bytes();
  message.number = ++pull_counter_;
  const ProcessId home = reception.from;
  reception.label = {kPullStream, message.number};
  Receive(std::move(reception));
  SendControl(home, message);
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
  // A message that cannot be sent is an endpoint that has failed: its handler tells.
  if (posting.message.kind == ControlKind::kWelcome && posting.request.status() == UCS_OK) {
    PeerAt(posting.message.to).settled = true;
    ++counters_->peers_connected;
  }
  const auto found = posting_.find(&posting);
  retired_posting_.push_back(std::move(found->second));
  posting_.erase(found);
}

void UcxEngine::Greet(ProcessId from) {
  Peer& peer = PeerAt(from);
  if (peer.greeted || peer.endpoint->closed()) return;
  peer.greeted = true;
  ControlMessage welcome;
  welcome.kind = ControlKind::kWelcome;
  PostControl(from, welcome);  // also while closing: that waits for it
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
           message.from != options_.self;
  };
  const bool possible = message.magic == kWireMagic && message.to == options_.self && is_peer();
  // Even from one who has another secret: this is about how far UCX has come with its endpoint.
  if (possible && message.kind == ControlKind::kHello) Greet(message.from);
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
    case ControlKind::kWelcome:
      return;
    case ControlKind::kPull:
      return HandlePull(message);
    case ControlKind::kRefused:
      return HandleRefusal(message);
    case ControlKind::kReturn:
      return HandleReturn(message);
  }
}

void UcxEngine::HandlePull(const ControlMessage& message) {
  if (options_.store != nullptr) {
    try {
      return Answer(message, options_.store->Pinned(message.key, message.offset,
                                                    static_cast<std::int64_t>(message.num_bytes)));
    } catch (const std::out_of_range&) {
      // The one who asked says it: it knows what for.
    }
  }
  Refuse(message);
}

void UcxEngine::Answer(const ControlMessage& pull, Buffer bytes) {
  const Label label{kPullStream, pull.number};
  if (bytes.on_host() || (reads_device_memory_ && bytes.parts().empty()))
    return Send(pull.from, label, std::move(bytes), nullptr);
  if (!options_.to_host) return Refuse(pull);
  options_.to_host(std::move(bytes), [this, pull, label](Buffer here, const std::string& error) {
    pump_.Post([this, pull, label, here = std::move(here), failed = !error.empty()]() mutable {
      if (failed) return Refuse(pull);
      Send(pull.from, label, std::move(here), nullptr);
    });
  });
}

void UcxEngine::Refuse(const ControlMessage& pull) {
  ControlMessage refusal = pull;
  refusal.kind = ControlKind::kRefused;
  SendControl(pull.from, refusal);
}

void UcxEngine::HandleRefusal(const ControlMessage& message) {
  Peer& peer = PeerAt(message.from);
  const auto found = peer.receiving.find(
      peer.key->Tag(WirePurpose::kPayload, options_.self, {kPullStream, message.number}));
  if (found == peer.receiving.end()) return;
  Receiving& receiving = *found->second;
  Fail(receiving, receiving.reception.what + ": " + peer.name + " does not have " +
                      std::to_string(message.num_bytes) + " bytes at byte " +
                      std::to_string(message.offset) + " of tensor " + std::to_string(message.key) +
                      " (it has let go of it, or the reference is wrong)");
  Advance(receiving);
}

void UcxEngine::HandleReturn(const ControlMessage& message) {
  if (options_.store == nullptr) return;
  try {
    options_.store->TakeBack(message.key, message.number);
  } catch (const std::out_of_range& error) {
    // Whatever it does next cannot be trusted. Not inside a callback: this closes its endpoint.
    pump_.Post([this, from = message.from, reason = std::string(error.what())] {
      PeerFailed(from, "it returned what it did not have: " + reason);
    });
  }
}

}  // namespace troupe
