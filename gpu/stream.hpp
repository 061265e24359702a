// Streams and the events that order them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <cuda_runtime_api.h>

namespace troupe::gpu {

class Completions;
class Event;

/// Owns one stream that does not wait for the default stream.
class Stream {
 public:
  explicit Stream(int device);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  /// Blocks until every callback of OnOutcome has run, and for nothing else.
  ~Stream();

  int device() const { return device_; }
  cudaStream_t get() const { return stream_; }  ///< borrowed

  /// Work queued from now on waits for `event`; the calling thread does not. An event that was
  /// never recorded is ignored.
  void Wait(const Event& event) const;
  /// Calls `done` with "" after all work queued so far, or with CUDA's error text if the device has
  /// failed. Exactly once, in the order of the calls, on a thread of the driver. `done` must not
  /// call CUDA, wait or throw; it may send a message. It must not hold the last handle to device
  /// memory, whose release calls CUDA. Work queued after this call does not wait for `done`. Not
  /// thread-safe. The first call creates a second stream and a sleeping thread. Throws CudaError if
  /// the device has failed before; `done` is then not called.
  void OnOutcome(std::function<void(const std::string& error)> done) const;
  /// Blocks until all queued work and callbacks are done. For the end of a job and for tests.
  void Synchronize() const;

 private:
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  mutable std::unique_ptr<Completions> completions_;  // created on first use
};

/// A non-owning view of a stream.
class StreamView {
 public:
  StreamView(const Stream& stream) : stream_(stream.get()) {}  // like std::string_view of a string
  explicit StreamView(cudaStream_t stream) : stream_(stream) {}
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_;
};

/// A point in a stream. Move-only.
class Event {
 public:
  enum class Timed { kNo, kYes };  ///< kYes: for MillisecondsSince; costs more

  explicit Event(int device, Timed timed = Timed::kNo);
  Event(Event&& other) noexcept;
  Event& operator=(Event&&) = delete;
  ~Event();

  cudaEvent_t get() const { return event_; }  ///< borrowed

  /// After all work queued on `stream` so far.
  void Record(const Stream& stream) { Record(stream.get()); }
  void Record(cudaStream_t stream);  ///< a stream of the event's device
  /// Between two timed events that have completed.
  float MillisecondsSince(const Event& earlier) const;

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace troupe::gpu
