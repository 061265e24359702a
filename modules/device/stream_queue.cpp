#include "modules/device/stream_queue.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "gpu/copies.hpp"
#include "gpu/device.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

std::int64_t NsBetween(const gpu::Event& earlier, const gpu::Event& later) {
  return std::llround(static_cast<double>(later.MillisecondsSince(earlier)) * 1e6);
}

}  // namespace

StreamQueue::StreamQueue(int device, StreamMemory memory, std::function<void(gpu::Stream&)> bind)
    : stream_(device), memory_(std::move(memory)), bind_(std::move(bind)) {}

StreamQueue::~StreamQueue() {
  // What is queued may still use what is kept here.
  try {
    stream_.Synchronize();
  } catch (const std::exception&) {  // a device that has failed uses nothing any more
  }
}

void StreamQueue::BindThread() {
  if (bind_) bind_(stream_);
}

Buffer StreamQueue::Allocate(Shape shape, DType dtype) {
  const std::size_t num_bytes = static_cast<std::size_t>(NumElements(shape)) * SizeOf(dtype);
  std::shared_ptr<void> owner = memory_(num_bytes, stream_);
  void* const data = owner.get();
  return Buffer::Wrap(std::move(owner), data, std::move(shape), dtype, stream_.device());
}

/// A handle to the same rows; what its last owner lets go of stays until the work has run that is
/// queued by then.
Buffer StreamQueue::Kept(const Buffer& rows) {
  std::shared_ptr<void> owner(rows.data(),
                              [released = released_, inner = rows.owner()](void*) mutable {
                                const std::lock_guard lock(released->mutex);
                                released->owners.push_back(std::move(inner));
                              });
  return Buffer::Wrap(std::move(owner), rows.data(), rows.shape(), rows.dtype(), rows.device());
}

Buffer StreamQueue::Here(const Buffer& rows) {
  if (!rows.defined()) return rows;
  if (rows.device() == stream_.device() && rows.parts().empty()) return Kept(rows);
  Buffer whole = Allocate(rows.shape(), rows.dtype());
  std::byte* to = whole.data();
  const auto append = [&](const Buffer& part) {
    if (part.on_host() || part.device() == stream_.device()) {
      const auto way = part.on_host() ? gpu::Way::kToDevice : gpu::Way::kOnDevice;
      gpu::Copy(stream_, to, part.data(), part.num_bytes(), way);
    } else {
      gpu::CopyFromDevice(stream_, to, part.data(), part.device(), part.num_bytes());
    }
    to += part.num_bytes();
    const std::lock_guard lock(released_->mutex);
    released_->owners.push_back(part.owner());
  };
  if (rows.parts().empty()) append(rows);
  for (const Buffer& part : rows.parts()) append(part);
  return whole;
}

StreamQueue::Piece StreamQueue::NewPiece() {
  if (spare_.empty()) {
    using Timed = gpu::Event::Timed;
    return {gpu::Event(stream_.device(), Timed::kYes),
            gpu::Event(stream_.device(), Timed::kYes),
            0,
            false,
            {}};
  }
  Piece piece = std::move(spare_.back());
  spare_.pop_back();
  return piece;
}

void StreamQueue::Begin(const std::string& name) {
  range_.emplace(name);
  open_.emplace(NewPiece());
  open_->asked_ns = NowNs();
  open_->queue_was_empty = pieces_.empty();
  open_->begin.Record(stream_);
}

void StreamQueue::End(std::function<void(const std::string& error)> done) {
  range_.reset();
  Piece piece = std::move(*open_);
  open_.reset();
  if (!done) return;
  piece.end.Record(stream_);
  {
    const std::lock_guard lock(released_->mutex);
    piece.kept.swap(released_->owners);
  }
  pieces_.push_back(std::move(piece));
  try {
    stream_.OnOutcome(std::move(done));
  } catch (...) {
    pieces_.pop_back();
    throw;
  }
}

/// A device's clock is read as time since the piece before, so that rounding does not grow with the
/// run; where the queue was empty, the work began when the host asked for it.
WorkTimes StreamQueue::TakeTimes() {
  Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  piece.kept.clear();
  WorkTimes times;
  try {
    times.begin_ns = piece.asked_ns;
    if (last_ && !piece.queue_was_empty) {
      times.begin_ns = last_end_ns_ + NsBetween(last_->end, piece.begin);
    }
    times.end_ns = times.begin_ns + NsBetween(piece.begin, piece.end);
  } catch (const std::exception&) {  // the device has failed: whoever asked knows already
    times.end_ns = NowNs();
  }
  const std::int64_t ahead_ns = std::max<std::int64_t>(times.end_ns - NowNs(), 0);
  times.begin_ns -= ahead_ns;
  times.end_ns -= ahead_ns;
  last_end_ns_ = times.end_ns;
  if (last_) spare_.push_back(std::move(*last_));
  last_.emplace(std::move(piece));
  return times;
}

}  // namespace troupe
