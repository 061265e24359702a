// A rank's work queue on a stream of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gpu/nvtx.hpp"
#include "gpu/stream.hpp"
#include "modules/work_queue.hpp"

namespace troupe {

/// Memory of `stream`'s device for what is queued on it from now on; released in its order. Throws
/// where there is no more.
using StreamMemory = std::function<std::shared_ptr<void>(std::size_t bytes, gpu::Stream& stream)>;

class StreamQueue final : public WorkQueue {
 public:
  /// `bind` is called by BindThread: libraries learn which stream is theirs.
  StreamQueue(int device, StreamMemory memory, std::function<void(gpu::Stream&)> bind);
  ~StreamQueue() override;

  gpu::Stream& stream() { return stream_; }

  Buffer Allocate(Shape shape, DType dtype) override;
  /// Whoever gave the rows may use their memory anew only when what is queued here has read them:
  /// they are kept until then.
  Buffer Here(const Buffer& rows) override;
  void BindThread() override;
  void Begin(const std::string& name) override;
  void End(std::function<void(const std::string& error)> done) override;
  WorkTimes TakeTimes() override;
  void Synchronize() override { stream_.Synchronize(); }

 private:
  /// Memory whose last owner has gone while work that uses it may still be queued. Owners go on any
  /// thread.
  struct Released {
    std::mutex mutex;
    std::vector<std::shared_ptr<void>> owners;
  };
  struct Piece {
    gpu::Event begin;
    gpu::Event end;
    std::int64_t asked_ns = 0;  ///< by the host's clock
    bool queue_was_empty = false;
    std::vector<std::shared_ptr<void>> kept;  ///< until it has run
  };

  Piece NewPiece();
  Buffer Kept(const Buffer& rows);

  gpu::Stream stream_;
  StreamMemory memory_;
  std::function<void(gpu::Stream&)> bind_;
  std::shared_ptr<Released> released_ = std::make_shared<Released>();
  std::optional<gpu::Range> range_;
  std::optional<Piece> open_;
  std::deque<Piece> pieces_;      ///< that have ended and whose times nobody has taken
  std::vector<Piece> spare_;      ///< for their events
  std::optional<Piece> last_;     ///< the one whose times were taken last
  std::int64_t last_end_ns_ = 0;  ///< of it
};

}  // namespace troupe
