#include "transport/local_gate.hpp"

namespace troupe {

bool LocalGate::Enter() {
  // Until this member arrives, only the closed bit can change.
  std::uint32_t before = phase_.load(std::memory_order_acquire);
  if ((before & kClosed) != 0) return false;
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < size_) return Wait(before, true);
  arrived_.store(0, std::memory_order_relaxed);
  // Fails if the gate was closed meanwhile: the waiting members have given up or will.
  if (!phase_.compare_exchange_strong(before, before + kOnePhase, std::memory_order_acq_rel))
    return false;
  phase_.notify_all();
  return true;
}

void LocalGate::Meet() {
  const std::uint32_t before = phase_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < size_) {
    Wait(before, false);
    return;
  }
  arrived_.store(0, std::memory_order_relaxed);
  phase_.fetch_add(kOnePhase, std::memory_order_acq_rel);
  phase_.notify_all();
}

void LocalGate::Close() {
  phase_.fetch_or(kClosed, std::memory_order_acq_rel);
  phase_.notify_all();
}

bool LocalGate::Wait(std::uint32_t before, bool can_fail) const {
  for (;;) {
    const std::uint32_t now = phase_.load(std::memory_order_acquire);
    if (((now ^ before) & ~kClosed) != 0) return true;
    if (can_fail && (now & kClosed) != 0) return false;
    phase_.wait(now, std::memory_order_acquire);
  }
}

}  // namespace troupe
