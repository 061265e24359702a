// What computes, where ranks are more than threads: backend = "cuda".
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
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
                                                  const GroupNames& names, Lane lane) = 0;
  /// Memory of a GPU that anybody may use at once, for what comes from other processes.
  virtual DeviceMemory memory() = 0;
};

/// How tensors on GPUs travel between processes. Made before the plane that it stands in front of;
/// to be destroyed when that has been closed and before it is destroyed.
class DeviceTransport {
 public:
  virtual ~DeviceTransport() = default;
  /// What the plane needs for those who pull.
  virtual std::function<void(Buffer bytes, BroughtToHost done)> ToHost() = 0;
  /// Stands in front of a plane, one object behind two interfaces, from now on. Once. Returns a
  /// line for the start of a run.
  virtual std::string StandBefore(DataPlane& plane, TensorCarrier& carrier,
                                  bool reads_device_memory) = 0;
  virtual DataPlane& plane() = 0;
  virtual TensorCarrier& carrier() = 0;
};

/// Of backend "cuda". With transport.verify = "payload" what it copies between host and GPUs is
/// checked. `abort` is raised when a copy of what others wait for fails. Throws as MakeCudaBackend.
std::shared_ptr<DeviceTransport> MakeCudaTransport(const Config& config,
                                                   std::shared_ptr<AbortSignal> abort);

/// Why this build cannot run `backend`, as a sentence that says what it lacks; empty when it can.
/// Whether there is a device is not asked.
std::string MissingFor(Backend backend);

struct GpuFacts {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  std::size_t memory_bytes = 0;
};
/// The GPUs that this process may use, in their order; none where the build cannot use any. Throws
/// std::runtime_error in the driver's words.
std::vector<GpuFacts> GpusHere();

/// Gets a line to tell the user: "GPU 0  NVIDIA H100 80GB HBM3, 79.1 GiB: ranks 0-1 share it",
/// and once for each group how its collectives go. On any thread; empty: nobody is told.
using SayLine = std::function<void(const std::string& line)>;

/// Of backend "cuda", for the ranks of process `self`. Throws std::runtime_error naming what is
/// missing: a build for GPUs, a driver, or GPUs for all ranks.
std::shared_ptr<DeviceBackend> MakeCudaBackend(const Config& config, const std::vector<int>& ranks,
                                               ProcessId self, std::shared_ptr<AbortSignal> abort,
                                               SayLine say);

/// What the ranks of the configuration's backend use: of a GPU what libtorch's allocator has of it,
/// else the process's resident bytes.
std::shared_ptr<MemoryMeter> MakeMemoryMeter(const Config& config);

}  // namespace troupe
