#include "modules/torch/copy_lane.hpp"

#ifdef TROUPE_TORCH_CUDA
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <deque>
#include <iterator>
#include <utility>

#include "gpu/check.hpp"
#include "gpu/copies.hpp"
#include "gpu/stream.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

/// Copies on a separate stream, concurrent with the rank's.
class DeviceCopyLane : public CopyLane {
 public:
  explicit DeviceCopyLane(int device) : stream_(device), queued_(device) {}
  ~DeviceCopyLane() override {
    try {
      stream_.Synchronize();
    } catch (const gpu::CudaError&) {  // a device that has failed copies nothing any more
    }
  }

  at::Tensor HostBytes(std::int64_t bytes) override {
    return at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(true));
  }

  Job Queue(std::vector<LaneCopy> copies, std::function<void()> release,
            StateMovedCallback done) override {
    const c10::cuda::CUDAStream mine = c10::cuda::getStreamFromExternal(
        stream_.get(), static_cast<c10::DeviceIndex>(stream_.device()));
    // After the work that the rank has queued: it writes what leaves, and has used the memory that
    // comes back.
    queued_.Record(c10::cuda::getCurrentCUDAStream(mine.device_index()).stream());
    stream_.Wait(queued_);
    const std::int64_t begin_ns = NowNs();
    for (const LaneCopy& copy : copies) {
      const auto way = copy.from.is_cuda() ? gpu::Way::kToHost : gpu::Way::kToDevice;
      gpu::Copy(stream_, copy.to.data_ptr(), copy.from.data_ptr(), copy.from.nbytes(), way);
      // What leaves is released before this stream has read it: the pool keeps it until then. What
      // comes back is released by work that follows the copy. What stays must not be noted: the pool
      // would ask this stream when the memory is released, and the stream may be gone by then.
      if (!release || !copy.from.is_cuda()) continue;
      c10::cuda::CUDACachingAllocator::recordStream(copy.from.storage().data_ptr(), mine);
    }
    if (release) release();
    stream_.OnOutcome([begin_ns, done = std::move(done)](const std::string& error) {
      done({begin_ns, NowNs(), error});
    });
    while (!ends_.empty() && cudaEventQuery(ends_.front().get()) == cudaSuccess) PopEnd();
    cudaGetLastError();  // "not ready" is no error
    ends_.emplace_back(stream_.device()).Record(stream_);
    return first_end_ + std::ssize(ends_) - 1;
  }

  bool Wait(Job job) override {
    if (job < first_end_) return false;
    TROUPE_CUDA(cudaEventSynchronize(EndOf(job).get()));
    while (first_end_ <= job) PopEnd();
    return true;
  }

  bool Join(Job job) override {
    if (job < first_end_) return false;
    const auto mine =
        c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(stream_.device()));
    TROUPE_CUDA(cudaStreamWaitEvent(mine.stream(), EndOf(job).get()));
    return false;  // the device waits, if anyone does
  }

 private:
  const gpu::Event& EndOf(Job job) const {
    return ends_.at(static_cast<std::size_t>(job - first_end_));
  }

  void PopEnd() {
    ends_.pop_front();
    ++first_end_;
  }

  gpu::Stream stream_;
  gpu::Event queued_;
  std::deque<gpu::Event> ends_;  ///< of the last jobs
  Job first_end_ = 1;            ///< the job of the first of them; those before have run
};

}  // namespace

std::unique_ptr<CopyLane> MakeDeviceCopyLane(int device) {
  return std::make_unique<DeviceCopyLane>(device);
}

}  // namespace troupe
#endif
