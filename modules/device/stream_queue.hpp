// A rank's work queue on streams of a GPU: one per lane.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gpu/nvtx.hpp"
#include "gpu/stream.hpp"
#include "modules/device/stream_lane.hpp"
#include "modules/work_queue.hpp"

namespace troupe {

/// Memory of `stream`'s device for what is queued on it from now on; released in its order. Throws
/// where there is no more.
using StreamMemory = std::function<std::shared_ptr<void>(std::size_t bytes, gpu::Stream& stream)>;

class StreamQueue final : public WorkQueue {
 public:
  /// `bind` is called by BindThread and where work changes lanes: libraries learn which stream is
  /// theirs from then on. May be empty.
  StreamQueue(int device, StreamMemory memory, std::function<void(gpu::Stream&)> bind)
      : compute_(device),
        collectives_(device),
        memory_(std::move(memory)),
        bind_(std::move(bind)) {}

  gpu::Stream& stream(Lane lane) { return On(lane).stream(); }
  /// The one on which work is queued now.
  gpu::Stream& bound_stream() { return stream(lane_); }

  Buffer Allocate(Shape shape, DType dtype) override;
  /// Keeps the rows until the work that is queued here has read them: their owner may reuse the
  /// memory only then.
  Buffer Here(const Buffer& rows) override;
  /// Page-locked memory, complete when the work that is queued here has run.
  Buffer OnHost(const Buffer& rows) override;
  void BindThread() override { Bind(Lane::kCompute); }
  void Begin(const std::string& name, Lane lane) override;
  void End(std::function<void(const std::string& error)> done) override;
  WorkTimes TakeTimes(Lane lane) override { return On(lane).TakeTimes(); }
  void Synchronize() override {
    compute_.stream().Synchronize();
    collectives_.stream().Synchronize();
  }

 private:
  StreamLane& On(Lane lane) { return lane == Lane::kCompute ? compute_ : collectives_; }
  void Bind(Lane lane) {
    lane_ = lane;
    if (bind_) bind_(stream(lane));
  }
  Buffer LaidTogether(const Buffer& rows);

  StreamLane compute_;
  StreamLane collectives_;
  StreamMemory memory_;
  std::function<void(gpu::Stream&)> bind_;
  Lane lane_ = Lane::kCompute;  ///< of work that is queued now
  std::optional<gpu::Range> range_;
};

}  // namespace troupe
