// One lane of a rank's work queue: a stream, the times of its work, and the memory that it still
// uses.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gpu/stream.hpp"
#include "modules/work_queue.hpp"

namespace troupe {

/// Used on the rank's thread only.
class StreamLane {
 public:
  explicit StreamLane(int device) : stream_(device) {}
  StreamLane(const StreamLane&) = delete;
  StreamLane& operator=(const StreamLane&) = delete;
  /// Waits until the memory that is kept here is no longer used.
  ~StreamLane();

  gpu::Stream& stream() { return stream_; }

  /// A handle to the same rows. When its last owner releases it, they stay until the work has run
  /// that is queued by then. Rows that were neighbours are neighbours.
  Buffer Kept(const Buffer& rows);
  /// `owner` stays until the piece that is open has run, or the next to come.
  void Keep(std::shared_ptr<void> owner);

  // As WorkQueue says.
  void Begin();
  void End(std::function<void(const std::string& error)> done);
  WorkTimes TakeTimes();

 private:
  /// Memory whose last owner has gone while work that uses it may still be queued. Owners go on any
  /// thread.
  struct Released {
    std::mutex mutex;
    std::vector<std::shared_ptr<void>> owners;
    void Add(std::shared_ptr<void> owner) {
      const std::lock_guard lock(mutex);
      owners.push_back(std::move(owner));
    }
  };
  struct Piece {
    gpu::Event begin;
    gpu::Event end;
    std::int64_t asked_ns = 0;  ///< by the host's clock
    bool lane_was_empty = false;
    std::vector<std::shared_ptr<void>> kept;  ///< until it has run
  };

  Piece NewPiece();

  gpu::Stream stream_;
  std::shared_ptr<Released> released_ = std::make_shared<Released>();
  std::map<const void*, std::weak_ptr<void>> kept_;  ///< living handles, by their memory
  std::optional<Piece> open_;
  std::deque<Piece> pieces_;      ///< that have ended and whose times are not taken yet
  std::vector<Piece> spare_;      ///< for their events
  std::optional<Piece> last_;     ///< the one whose times were taken last
  std::int64_t last_end_ns_ = 0;  ///< of it
};

}  // namespace troupe
