// A machine with GPUs, played by host memory and threads: a test links it instead of the CUDA
// runtime, and the host code of gpu/ and transport/ runs as on devices.
//
//   memory   host memory in a registry: what runs on a stream may touch it from its allocation to
//            its release in stream order only; fresh and released memory is filled with rubbish
//   stream   a thread that does one piece of work after the other, after a random moment if asked:
//            what is not ordered by streams and events comes out of order, and is a data race to
//            ThreadSanitizer
//   device   breaks on request, for good: its work is skipped, its host functions are not called,
//            stream callbacks get the error, and every call returns it
//   fault    a use that CUDA would not forgive or not notice; the first is kept for the test
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include <cuda_runtime_api.h>

namespace troupe::emulated {

struct MachineSettings {
  int num_devices = 2;
  std::size_t memory_bytes = std::size_t{1} << 30;  ///< of each device
  std::chrono::microseconds max_delay{0};           ///< before each piece of work of a stream
  unsigned seed = 1;                                ///< of these moments
};

/// A copy that goes wrong: of those of `num_bytes` from now on, after `skipped` others, the next
/// one leaves another value at `byte` of what it writes.
struct SpoiltCopy {
  std::size_t num_bytes = 0;
  std::size_t byte = 0;
  int skipped = 0;
};

/// One at a time. Make it before anything of gpu/, destroy it after: it waits for all streams.
class Machine {
 public:
  explicit Machine(MachineSettings settings = {});
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  /// The device fails now, for good.
  void Break(int device, cudaError_t error = cudaErrorIllegalAddress);
  /// It fails when `stream` comes to this point.
  void BreakInTurn(cudaStream_t stream, cudaError_t error = cudaErrorIllegalAddress);
  /// Runs in its turn on a stream, also after a failure of the device.
  void InTurn(cudaStream_t stream, std::function<void()> work);

  /// One at a time; copies are counted as they are asked for, by cudaMemcpyAsync.
  void Spoil(SpoiltCopy copy);

  std::size_t num_kernels() const;  ///< that were launched so far
  /// The first thing that was done wrong; empty if nothing.
  std::string fault() const;
  /// "1 streams, 0 events, 0 pools, 3 allocations": what was made and not given back, once all
  /// streams have run what they have.
  std::string open() const;
  /// Open of everything.
  static constexpr const char* kNothing = "0 streams, 0 events, 0 pools, 0 allocations";
};

}  // namespace troupe::emulated
