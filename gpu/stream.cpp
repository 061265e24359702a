#include "gpu/stream.hpp"

#include <memory>
#include <utility>

#include "gpu/check.hpp"
#include "gpu/completion.hpp"
#include "gpu/device.hpp"

namespace troupe::gpu {

Stream::Stream(int device) : device_(device) {
  const DeviceGuard guard(device);
  TROUPE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

Stream::~Stream() {
  completions_.reset();
  TROUPE_CUDA_NO_THROW(cudaStreamDestroy(stream_));
}

void Stream::Wait(const Event& event) const {
  TROUPE_CUDA(cudaStreamWaitEvent(stream_, event.get(), 0));
}

void Stream::OnOutcome(std::function<void(const std::string& error)> done) const {
  if (completions_ == nullptr) completions_ = std::make_unique<Completions>(device_);
  completions_->Notify(*this, std::move(done));
}

void Stream::Synchronize() const {
  TROUPE_CUDA(cudaStreamSynchronize(stream_));
  if (completions_ != nullptr) completions_->Drain();
}

Event::Event(int device, Timed timed) {
  const DeviceGuard guard(device);
  const unsigned flags = timed == Timed::kYes ? cudaEventDefault : cudaEventDisableTiming;
  TROUPE_CUDA(cudaEventCreateWithFlags(&event_, flags));
}

Event::Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}

Event::~Event() {
  if (event_ != nullptr) TROUPE_CUDA_NO_THROW(cudaEventDestroy(event_));
}

void Event::Record(cudaStream_t stream) { TROUPE_CUDA(cudaEventRecord(event_, stream)); }

float Event::MillisecondsSince(const Event& earlier) const {
  float ms = 0.0F;
  TROUPE_CUDA(cudaEventElapsedTime(&ms, earlier.get(), event_));
  return ms;
}

}  // namespace troupe::gpu
