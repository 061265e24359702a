#include "transport/plane_engine.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe {

/// A pull whose slices are arriving.
struct PlaneEngine::Slices {
  std::uint64_t key = 0;
  std::int64_t offset = 0;
  Reception whole;
  std::size_t requested = 0;  // bytes, from the front
  int open = 0;
  Failure failure;  // the first one
};

PlaneEngine::PlaneEngine(const PlaneSettings& settings, Pump& pump,
                         std::shared_ptr<PlaneCounters> counters)
    : settings_(settings), pump_(pump), counters_(std::move(counters)) {}

void PlaneEngine::Pull(std::uint64_t key, std::int64_t offset, Reception reception) {
  if (reception.destination.num_bytes() <= kSliceBytes)
    return PullSlice(key, offset, std::move(reception));
  const auto slices = std::make_shared<Slices>();
  slices->key = key;
  slices->offset = offset;
  slices->whole = std::move(reception);
  PullNext(slices);
}

void PlaneEngine::PullNext(const std::shared_ptr<Slices>& slices) {
  const Buffer& whole = slices->whole.destination;
  while (slices->failure.empty() && slices->open < kSlicesInFlight &&
         slices->requested < whole.num_bytes()) {
    const std::size_t size = std::min(kSliceBytes, whole.num_bytes() - slices->requested);
    const auto offset = slices->offset + static_cast<std::int64_t>(slices->requested);
    Reception slice{slices->whole.from,
                    {},
                    BytesOf(whole, slices->requested, size),
                    slices->whole.what,
                    [this, slices] {
                      --slices->open;
                      PullNext(slices);
                    },
                    [this, slices](const Failure& failure) {
                      --slices->open;
                      if (slices->failure.empty()) slices->failure = failure;
                      PullNext(slices);
                    }};
    slices->requested += size;
    ++slices->open;
    PullSlice(slices->key, offset, std::move(slice));
  }
  // Only after the last open slice has ended: until then the memory may still be written.
  if (slices->open > 0) return;
  const auto received = std::exchange(slices->whole.received, nullptr);
  const auto failed = std::exchange(slices->whole.failed, nullptr);
  if (received == nullptr) return;  // already called by a slice that was refused at once
  if (slices->failure.empty()) {
    received();
  } else {
    failed(slices->failure);
  }
}

void PlaneEngine::PullSlice(std::uint64_t key, std::int64_t offset, Reception reception) {
  const ProcessId home = reception.from;
  const PullRequest request{settings_.self, key, offset, reception.destination.num_bytes(),
                            ++pull_counter_};
  reception.label = {kPullStream, request.number};
  Receive(std::move(reception));
  RequestSlice(request, home);
}

void PlaneEngine::HandlePull(const PullRequest& request) {
  if (settings_.store != nullptr) {
    try {
      return Answer(request, settings_.store->Pinned(request.key, request.offset,
                                                     static_cast<std::int64_t>(request.num_bytes)));
    } catch (const std::out_of_range&) {
      // The receiver reports the error, since it knows the tensor's purpose.
    }
  }
  Refuse(request);
}

void PlaneEngine::Answer(const PullRequest& request, Buffer bytes) {
  const Label label{kPullStream, request.number};
  if (bytes.on_host() || (reads_device_memory_ && bytes.parts().empty()))
    return Send(request.from, label, std::move(bytes), nullptr);
  if (!settings_.to_host) return Refuse(request);
  settings_.to_host(std::move(bytes),
                    [this, request, label](Buffer on_host, const std::string& error) {
                      pump_.Post([this, request, label, on_host = std::move(on_host),
                                  failed = !error.empty()]() mutable {
                        if (failed) return Refuse(request);
                        Send(request.from, label, std::move(on_host), nullptr);
                      });
                    });
}

void PlaneEngine::HandleReturn(ProcessId from, std::uint64_t key, std::uint64_t weight) {
  if (settings_.store == nullptr) return;
  try {
    settings_.store->TakeBack(key, weight);
  } catch (const std::out_of_range& error) {
    // The peer can no longer be trusted. Posted, since PeerFailed closes the connection and must
    // not run inside its callback.
    pump_.Post([this, from, reason = std::string(error.what())] {
      PeerFailed(from, {"it returned weight it did not have: " + reason, FailureKind::kLost});
    });
  }
}

std::string RefusalText(const std::string& what, const std::string& peer,
                        const PullRequest& request) {
  return what + ": " + peer + " does not have " + std::to_string(request.num_bytes) +
         " bytes at byte " + std::to_string(request.offset) + " of tensor " +
         std::to_string(request.key) + " (it has released it, or the reference is wrong)";
}

Failure PlaneEngine::ReceiveError(const std::string& peer, const Failure& failure,
                                  const Reception& reception) const {
  if (!abort_cause_.empty()) return abort_cause_;
  if (closing_) return reception.what + ": the data plane of this process is closed";
  if (failure.empty()) return {};
  return {reception.what + ": " + peer + " is gone: " + failure.text, failure.kind};
}

const std::string& PlaneEngine::NameOf(ProcessId process) const {
  return settings_.names[static_cast<std::size_t>(process)];
}

void PlaneEngine::ReportFailure(ProcessId process, const std::string& reason) const {
  const bool expected = leaving_ || closing_ || !abort_cause_.empty();
  if (!expected && settings_.peer_failed) settings_.peer_failed(process, reason);
}

}  // namespace troupe
