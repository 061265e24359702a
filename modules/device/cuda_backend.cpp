// The functions of backend.hpp where nvcc is installed.
#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "gpu/device.hpp"
#include "layout/text.hpp"
#include "modules/device/backend.hpp"
#include "modules/device/stream_queue.hpp"
#include "modules/torch/cuda/torch_cuda.hpp"
#include "transport/gpu/device_group.hpp"
#include "transport/gpu/side_communicator.hpp"
#include "transport/gpu/staged_plane.hpp"
#ifdef TROUPE_HAS_NCCL
#include "transport/nccl/nccl.hpp"
#endif

namespace troupe {
namespace {

/// Null: this build has none.
std::unique_ptr<DeviceCollectives> MakeCollectives(std::shared_ptr<AbortSignal> abort) {
#ifdef TROUPE_HAS_NCCL
  return std::make_unique<Nccl>(std::move(abort));
#else
  static_cast<void>(abort);
  return nullptr;
#endif
}

class CudaBackend final : public DeviceBackend {
 public:
  CudaBackend(const Config& config, const std::vector<int>& ranks, ProcessId self,
              std::shared_ptr<AbortSignal> abort, SayLine say)
      : cluster_(config.cluster), self_(self), abort_(std::move(abort)), say_(std::move(say)) {
    for (const int rank : ranks) by_device_[GpuOf(cluster_, rank)].push_back(rank);
    const std::string missing = MissingGpus(cluster_, ranks, gpu::NumDevices());
    if (!missing.empty()) throw std::runtime_error("cluster.backend = \"cuda\": " + missing);
    for (const auto& [device, sharers] : by_device_) Say(DeviceLine(device, sharers));
    collectives_ = MakeCollectives(abort_);
  }

  std::unique_ptr<WorkQueue> MakeQueue(int rank) override {
    const int device = GpuOf(cluster_, rank);
    auto queue = std::make_unique<StreamQueue>(
        device,
        [device](std::size_t bytes, gpu::Stream& stream) {
          return AllocateTorchMemory(device, bytes, stream.get());
        },
        [device](gpu::Stream& stream) { BindTorchToStream(device, stream.get()); });
    const std::lock_guard lock(mutex_);
    queues_[rank] = queue.get();
    return queue;
  }

  DeviceMemory memory() override {
    return [this](Shape shape, DType dtype, int device) {
      const std::size_t bytes = static_cast<std::size_t>(NumElements(shape)) * SizeOf(dtype);
      std::shared_ptr<void> owner = AllocateTorchMemory(device, bytes, ArrivalStream(device));
      void* const data = owner.get();
      return Buffer::Wrap(std::move(owner), data, std::move(shape), dtype, device);
    };
  }

  std::unique_ptr<Communicator> MakeGroup(int rank, std::unique_ptr<Communicator> host,
                                          const GroupNames& names,
                                          std::optional<Lane> lane) override {
    DeviceMember member;
    member.host = std::move(host);
    member.process = self_;
    member.names = names;
    member.abort = abort_;
    StreamQueue& queue = QueueOf(rank);
    std::unique_ptr<gpu::Stream> own;
    if (!lane) own = std::make_unique<gpu::Stream>(GpuOf(cluster_, rank));
    member.stream = lane ? &queue.stream(*lane) : own.get();
    DeviceGroup group = MakeDeviceGroup(std::move(member), collectives_.get());
    Say(group.description);
    if (lane) return std::move(group.communicator);
    return MakeSideCommunicator(std::move(own), std::move(group.communicator),
                                [&queue]() -> const gpu::Stream& { return queue.bound_stream(); });
  }

 private:
  StreamQueue& QueueOf(int rank) {
    const std::lock_guard lock(mutex_);
    return *queues_.at(rank);
  }

  static std::string DeviceLine(int device, const std::vector<int>& ranks) {
    const gpu::DeviceFacts facts = gpu::FactsOf(device);
    const double gib = static_cast<double>(facts.memory_bytes) / (1 << 30);
    return "GPU " + std::to_string(device) + "  " + facts.name + Formatted(", %.1f GiB", gib) +
           (ranks.size() > 1 ? ": ranks " + RanksText(ranks) + " share it"
                             : ": rank " + RanksText(ranks));
  }

  /// Nothing is ever queued on it: memory that returns to its part of the pool is no longer used.
  void* ArrivalStream(int device) {
    const std::lock_guard lock(mutex_);
    return arrivals_.try_emplace(device, device).first->second.get();
  }

  /// Prints each line once: all members of a group report the same.
  void Say(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (say_ && said_.insert(line).second) say_(line);
  }

  const ClusterConfig cluster_;
  const ProcessId self_;
  const std::shared_ptr<AbortSignal> abort_;
  const SayLine say_;
  std::map<int, std::vector<int>> by_device_;
  std::unique_ptr<DeviceCollectives> collectives_;  ///< null: none is built in
  std::mutex mutex_;
  std::map<int, StreamQueue*> queues_;   ///< by rank
  std::map<int, gpu::Stream> arrivals_;  ///< by device
  std::set<std::string> said_;
};

class StagedTransport final : public DeviceTransport {
 public:
  StagedTransport(TransportVerify verify, std::shared_ptr<AbortSignal> abort)
      : abort_(std::move(abort)),
        staging_(verify == TransportVerify::kPayload ? CheckCopies::kYes : CheckCopies::kNo) {}

  std::function<void(Buffer bytes, BroughtToHost done)> ToHost() override {
    return MakeToHost(staging_, abort_);
  }
  std::string StandBefore(DataPlane& plane, TensorCarrier& carrier,
                          bool reads_device_memory) override {
    StagedPlane::Options options;
    options.reads_device_memory = reads_device_memory;
    options.abort = abort_;
    plane_.emplace(plane, carrier, staging_, std::move(options));
    return plane_->Describe("UCX");
  }
  DataPlane& plane() override { return *plane_; }
  TensorCarrier& carrier() override { return *plane_; }

 private:
  const std::shared_ptr<AbortSignal> abort_;
  std::optional<StagedPlane> plane_;
  DeviceStaging staging_;  ///< destroyed first: it reports its copies until then
};

class TorchMemory final : public MemoryMeter {
 public:
  explicit TorchMemory(ClusterConfig cluster) : cluster_(std::move(cluster)) {}
  MemoryUse UseOf(int rank) override {
    const DeviceMemoryUse use = TorchMemoryUse(GpuOf(cluster_, rank));
    return {use.in_use_bytes, use.reserved_bytes, use.peak_bytes};
  }

 private:
  const ClusterConfig cluster_;
};

}  // namespace

std::shared_ptr<DeviceBackend> MakeCudaBackend(const Config& config, const std::vector<int>& ranks,
                                               ProcessId self, std::shared_ptr<AbortSignal> abort,
                                               SayLine say) {
  return std::make_shared<CudaBackend>(config, ranks, self, std::move(abort), std::move(say));
}

std::vector<GpuFacts> GpusHere() {
  std::vector<GpuFacts> all;
  for (int device = 0; device < gpu::NumDevices(); ++device) {
    gpu::DeviceFacts facts = gpu::FactsOf(device);
    all.push_back({std::move(facts.name), facts.memory_bytes});
  }
  return all;
}

std::shared_ptr<DeviceTransport> MakeCudaTransport(const Config& config,
                                                   std::shared_ptr<AbortSignal> abort) {
  return std::make_shared<StagedTransport>(config.transport.verify, std::move(abort));
}

std::shared_ptr<MemoryMeter> MakeMemoryMeter(const Config& config) {
  if (config.cluster.backend != Backend::kCuda) return std::make_shared<ResidentMemory>();
  return std::make_shared<TorchMemory>(config.cluster);
}

}  // namespace troupe
