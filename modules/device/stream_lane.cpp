#include "modules/device/stream_lane.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "trace/clock.hpp"

namespace troupe {
namespace {

std::int64_t NsBetween(const gpu::Event& earlier, const gpu::Event& later) {
  return std::llround(static_cast<double>(later.MillisecondsSince(earlier)) * 1e6);
}

}  // namespace

StreamLane::~StreamLane() {
  try {
    stream_.Synchronize();
  } catch (const std::exception&) {  // a device that has failed uses nothing any more
  }
}

Buffer StreamLane::Kept(const Buffer& rows) {
  std::weak_ptr<void>& known = kept_[rows.owner().get()];
  std::shared_ptr<void> owner = known.lock();
  if (owner == nullptr) {
    owner = std::shared_ptr<void>(rows.owner().get(),
                                  [released = released_, inner = rows.owner()](void*) mutable {
                                    released->Add(std::move(inner));
                                  });
    known = owner;
  }
  return Buffer::Wrap(std::move(owner), rows.data(), rows.shape(), rows.dtype(), rows.device());
}

void StreamLane::Keep(std::shared_ptr<void> owner) { released_->Add(std::move(owner)); }

StreamLane::Piece StreamLane::NewPiece() {
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

void StreamLane::Begin() {
  open_.emplace(NewPiece());
  open_->asked_ns = NowNs();
  open_->lane_was_empty = pieces_.empty();
  open_->begin.Record(stream_);
}

void StreamLane::End(std::function<void(const std::string& error)> done) {
  Piece piece = std::move(*open_);
  open_.reset();
  if (!done) return;
  piece.end.Record(stream_);
  {
    const std::lock_guard lock(released_->mutex);
    piece.kept.swap(released_->owners);
  }
  std::erase_if(kept_, [](const auto& entry) { return entry.second.expired(); });
  pieces_.push_back(std::move(piece));
  try {
    stream_.OnOutcome(std::move(done));
  } catch (...) {  // it may run all the same
    for (auto& owner : pieces_.back().kept) released_->Add(std::move(owner));
    pieces_.pop_back();
    throw;
  }
}

/// A device's clock is read as time since the piece before, so that rounding does not grow with the
/// run; where the lane was empty, the work began when the host asked for it.
WorkTimes StreamLane::TakeTimes() {
  Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  piece.kept.clear();
  WorkTimes times;
  try {
    times.begin_ns = piece.asked_ns;
    if (last_ && !piece.lane_was_empty) {
      times.begin_ns = last_end_ns_ + NsBetween(last_->end, piece.begin);
    }
    times.end_ns = times.begin_ns + NsBetween(piece.begin, piece.end);
  } catch (const std::exception&) {  // the device has failed: `done` reports it
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
