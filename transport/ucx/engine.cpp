#include "transport/ucx/engine.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "layout/text.hpp"
#include "transport/ucx/engine_state.hpp"

namespace troupe {
Failure ConnectionFailure(ucs_status_t status) {
  return {std::string("its data connection failed: ") + ucs_status_string(status),
          FailureKind::kLost};
}

UcxEngine::UcxEngine(const UcxOptions& options, const WireSalt& salt, UcxWorker& worker, Pump& pump,
                     std::shared_ptr<PlaneCounters> counters)
    : PlaneEngine(options, pump, std::move(counters)),
      options_(options),
      worker_(worker),
      key_(options.secret, salt, options.self) {
  peers_.resize(options_.names.size());
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (static_cast<ProcessId>(i) == options_.self) continue;
    peers_[i] = std::make_unique<Peer>();
    peers_[i]->name = options_.names[i];
  }
  worker_.SetMessageHandler(kControlId, [this](std::span<const std::byte> it) { OnControl(it); });
}

UcxEngine::~UcxEngine() = default;

UcxEngine::Peer& UcxEngine::PeerAt(ProcessId process) {
  return *peers_[static_cast<std::size_t>(process)];
}

void UcxEngine::Connect(const std::vector<std::vector<std::byte>>& addresses) {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (addresses[i].empty()) peers_[i].reset();  // reached by another plane
    if (peers_[i] == nullptr) continue;
    Peer& peer = *peers_[i];
    const auto process = static_cast<ProcessId>(i);
    const PlaneAddress address = Unpack(addresses[i], peer.name);
    peer.key.emplace(options_.secret, address.salt, process);
    peer.endpoint = std::make_unique<UcxEndpoint>(
        worker_, address.worker, peer.name, [this, process](ucs_status_t status) {
          // Posted, since endpoints must not be closed inside their own handler.
          pump_.Post([this, process, status] { PeerFailed(process, ConnectionFailure(status)); });
        });
  }
  connected_ = true;
  // UCX connects with the first message, and then its keepalive covers the connection.
  for (std::size_t i = 0; i < peers_.size(); ++i)
    if (peers_[i] != nullptr) SendControl(static_cast<ProcessId>(i), {});
  for (const ControlMessage& message : std::exchange(early_, {})) Handle(message);
}

std::vector<std::string> UcxEngine::Lanes() const {
  std::vector<std::string> lanes;
  for (const auto& peer : peers_) {
    lanes.push_back(
        peer == nullptr || peer->endpoint == nullptr ? "" : Listed(peer->endpoint->Lanes(), " + "));
  }
  return lanes;
}

void UcxEngine::PeerFailed(ProcessId process, const Failure& reason) {
  Peer& peer = PeerAt(process);
  if (!peer.failure.empty()) return;
  peer.failure = reason;
  if (peer.endpoint != nullptr) peer.endpoint->Close();
  FailAll(peer, [&](const Reception& it) { return ReceiveError(peer, it); });
  ReportFailure(process, reason.text);
}

void UcxEngine::Abort(const Failure& cause) {
  if (!abort_cause_.empty()) return;
  abort_cause_ = cause.empty() ? Failure("the job was aborted") : cause;
  for (const auto& peer : peers_)
    if (peer != nullptr) FailAll(*peer, [&](const Reception&) { return abort_cause_; });
}

void UcxEngine::Abandon(const Failure& cause) {
  Abort(cause);
  for (const auto& peer : peers_) {
    if (peer != nullptr)
      for (const auto& [tag, receiving] : peer->receiving) Report(*receiving);
  }
}

void UcxEngine::BeginClose() {
  closing_ = true;
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    FailAll(*peer, [&](const Reception& it) { return ReceiveError(*peer, it); });
  }
  CloseSettled();
}

void UcxEngine::CloseSettled() {
  for (const auto& peer : peers_)
    if (peer != nullptr && peer->endpoint != nullptr && peer->settled) peer->endpoint->Close();
}

bool UcxEngine::settled() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) {
    return peer == nullptr || peer->endpoint == nullptr || peer->settled ||
           peer->endpoint->closed();
  });
}

bool UcxEngine::quiet() const {
  const bool closed = std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) {
    return peer == nullptr ||
           (peer->receiving.empty() && (peer->endpoint == nullptr ||
                                        (peer->endpoint->closed() && !peer->endpoint->closing())));
  });
  return closed && sending_.empty() && posting_.empty();
}

std::optional<UcxEngine::Clock::time_point> UcxEngine::AfterRound() {
  std::optional<Clock::time_point> next;
  if (closing_) CloseSettled();
  if (!dying_.empty()) {
    const Clock::time_point now = Clock::now();
    for (Receiving* receiving : std::vector<Receiving*>(dying_))
      if (!receiving->retired && now >= receiving->deadline) Report(*receiving);
    std::erase_if(dying_, [](const Receiving* it) { return it->retired || it->reported; });
    for (const Receiving* receiving : dying_)
      next = next ? std::min(*next, receiving->deadline) : receiving->deadline;
  }
  retired_receiving_.clear();
  retired_sending_.clear();
  retired_posting_.clear();
  return next;
}

}  // namespace troupe
