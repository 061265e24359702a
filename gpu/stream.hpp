// Streams, and the events that order them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <cuda_runtime_api.h>

namespace troupe::gpu {

class Completions;
class Event;

/// Owns one stream that does not wait for the default stream. Move-only.
class Stream {
 public:
  explicit Stream(int device);
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&&) = delete;
  /// Blocks until all that OnOutcome and OnDone promised is told, and for nothing else.
  ~Stream();

  int device() const { return device_; }
  cudaStream_t get() const { return stream_; }  ///< borrowed

  /// What is queued from now on waits for `event`; the calling thread does not. An event that was
  /// never recorded is not waited for.
  void Wait(const Event& event) const;
  /// Calls `done` when all that is queued so far has run, with "", or when the device has failed,
  /// with CUDA's words. Called exactly once, in the order of the calls, on a thread of the driver:
  /// it must not call CUDA, wait or throw, it may send a message, and `done` must not hold the last
  /// handle to memory of a device, whose release calls CUDA. What is queued after this does
  /// not wait for it. For one thread at a time; it costs a second stream and a thread that sleeps.
  /// Throws CudaError for a device that has failed before, `done` uncalled.
  void OnOutcome(std::function<void(const std::string& error)> done) const;
  /// The same for who does not ask how it went: a later call says it.
  void OnDone(std::function<void()> done) const;
  /// Blocks until all that is queued has run and been told. For the end of a job and for tests.
  void Synchronize() const;

 private:
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  mutable std::unique_ptr<Completions> completions_;  // made when it is first asked for
};

/// A stream that somebody else owns.
class StreamView {
 public:
  StreamView(const Stream& stream) : stream_(stream.get()) {}  // as std::string_view of a string
  explicit StreamView(cudaStream_t stream) : stream_(stream) {}
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_;
};

/// A place in a stream. Move-only.
class Event {
 public:
  enum class Timed { kNo, kYes };  ///< kYes: MillisecondsSince may ask it, and it costs more

  explicit Event(int device, Timed timed = Timed::kNo);
  Event(Event&& other) noexcept;
  Event& operator=(Event&&) = delete;
  ~Event();

  cudaEvent_t get() const { return event_; }  ///< borrowed

  /// Here, behind all that is queued on `stream`.
  void Record(const Stream& stream) { Record(stream.get()); }
  void Record(cudaStream_t stream);  ///< of the event's device
  /// Between two timed events that have passed.
  float MillisecondsSince(const Event& earlier) const;

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace troupe::gpu
