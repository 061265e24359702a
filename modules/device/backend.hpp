// The devices of ranks that are more than threads: backend = "cuda".
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "modules/groups.hpp"
#include "modules/memory_meter.hpp"
#include "modules/work_queue.hpp"
#include "transport/abort_signal.hpp"
#include "transport/tensor_store.hpp"

namespace troupe {

using BroughtToHost = std::function<void(Buffer here, const std::string& error)>;

/// The devices of this process. Must outlive everything it makes. Thread-safe.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  /// On the rank's own thread.
  virtual std::unique_ptr<WorkQueue> MakeQueue(int rank) = 0;
  /// On the rank's own thread, after its queue; groups in one order in all of the job.
  virtual std::unique_ptr<Communicator> MakeGroup(int rank, std::unique_ptr<Communicator> host,
                                                  const GroupNames& names,
                                                  std::optional<Lane> lane) = 0;
  /// GPU memory that may be used at once, for tensors from other processes.
  virtual DeviceMemory memory() = 0;
};

/// How tensors on GPUs travel between processes. Made before the plane that it stands in front of;
/// to be destroyed when that has been closed and before it is destroyed.
class DeviceTransport {
 public:
  virtual ~DeviceTransport() = default;
  /// Copies tensors to the host for the processes that pull them from the plane.
  virtual std::function<void(Buffer bytes, BroughtToHost done)> ToHost() = 0;
  /// Wraps `plane` and `carrier`, which are one object, from now on. Called once. Returns a line
  /// for the start of a run.
  virtual std::string StandBefore(DataPlane& plane, TensorCarrier& carrier,
                                  bool reads_device_memory) = 0;
  virtual DataPlane& plane() = 0;
  virtual TensorCarrier& carrier() = 0;
};

/// The transport of backend "cuda". With transport.verify = "payload" it checks its copies between
/// host and GPUs. It raises `abort` if a copy fails that other actors wait for. Throws as
/// MakeCudaBackend.
std::shared_ptr<DeviceTransport> MakeCudaTransport(const Config& config,
                                                   std::shared_ptr<AbortSignal> abort);

/// Returns why this build cannot run `backend`, or an empty text. Does not look for a device.
std::string MissingFor(Backend backend);

struct GpuFacts {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  std::size_t memory_bytes = 0;
};
/// The GPUs that this process may use, in their order; none if the build cannot use any. Throws
/// std::runtime_error with the driver's message.
std::vector<GpuFacts> GpusHere();

/// Prints a line for the user: "GPU 0  NVIDIA H100 80GB HBM3, 79.1 GiB: ranks 0-1 share it", and
/// once for each group the path of its collectives. Called on any thread; may be empty.
using SayLine = std::function<void(const std::string& line)>;

/// The backend "cuda" for the ranks of process `self`. Throws std::runtime_error that names the
/// missing part: a build for GPUs, a driver, or GPUs for all ranks.
std::shared_ptr<DeviceBackend> MakeCudaBackend(const Config& config, const std::vector<int>& ranks,
                                               ProcessId self, std::shared_ptr<AbortSignal> abort,
                                               SayLine say);

/// Measures the memory that ranks use: on a GPU the memory of libtorch's allocator, else the
/// resident bytes of the process.
std::shared_ptr<MemoryMeter> MakeMemoryMeter(const Config& config);

}  // namespace troupe
