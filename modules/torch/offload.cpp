#include "modules/torch/offload.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe {
namespace {

const char* WordFor(StateUse use) {
  switch (use) {
    case StateUse::kForward:
      return "parameters";
    case StateUse::kBackward:
      return "gradients";
    case StateUse::kUpdate:
      return "moments";
  }
  return "?";
}

}  // namespace

OffloadedState::OffloadedState(std::string who, Offload what, std::vector<FlatState> flats,
                               std::unique_ptr<CopyLane> lane)
    : who_(std::move(who)), lane_(std::move(lane)) {
  for (FlatState& state : flats) {
    const bool leaves = state.tensor.numel() > 0 &&
                        (what == Offload::kState ||
                         (what == Offload::kParameters && state.use == StateUse::kForward));
    flats_.push_back({.state = std::move(state), .leaves = leaves, .side = {}});
  }
}

void OffloadedState::RequirePlace(Place place, const char* action) const {
  static constexpr const char* kWords[] = {"here", "leaving its device", "away from its device",
                                           "on its way back to its device"};
  const Place is = place_.load(std::memory_order_acquire);
  if (is == place) return;
  throw std::logic_error(who_ + ": " + action + ": expected its state to be " +
                         kWords[static_cast<int>(place)] + ", it is " +
                         kWords[static_cast<int>(is)]);
}

void OffloadedState::Leave(StateMovedCallback done) {
  RequirePlace(Place::kHere, "offload");
  std::vector<LaneCopy> copies;
  std::vector<at::Tensor> released;
  for (Flat& flat : flats_) {
    if (!flat.leaves || !flat.here) continue;
    if (!flat.side.defined())
      flat.side = lane_->HostBytes(static_cast<std::int64_t>(flat.state.tensor.nbytes()));
    if (std::exchange(flat.changed, false)) copies.push_back({flat.side, flat.state.tensor});
    released.push_back(flat.state.tensor);
    flat.here = false;
  }
  place_ = Place::kLeaving;
  lane_->Queue(
      std::move(copies),
      [released = std::move(released)] { std::ranges::for_each(released, LetGo); },
      [this, done = std::move(done)](const WorkTimes& times) {
        place_.store(Place::kAway, std::memory_order_release);
        done(times);
      });
}

std::vector<LaneCopy> OffloadedState::TakeBack(bool (*wanted)(StateUse)) {
  std::vector<LaneCopy> copies;
  for (Flat& flat : flats_) {
    if (flat.here || !wanted(flat.state.use)) continue;
    TakeMemory(flat.state.tensor);
    copies.push_back({flat.state.tensor, flat.side});
    flat.here = true;
  }
  return copies;
}

void OffloadedState::Return(bool all, StateMovedCallback done) {
  RequirePlace(Place::kAway, "restore");
  place_ = Place::kReturning;
  lane_->Queue(TakeBack([](StateUse use) { return use != StateUse::kUpdate; }), {},
               [this, done = std::move(done)](const WorkTimes& times) {
                 place_.store(Place::kHere, std::memory_order_release);
                 done(times);
               });
  if (!all) return;
  last_return_ = lane_->Queue(TakeBack([](StateUse) { return true; }), {}, [](const WorkTimes&) {});
}

bool OffloadedState::IsHere(StateUse use) const {
  return std::ranges::all_of(
      flats_, [use](const Flat& flat) { return flat.here || flat.state.use != use; });
}

void OffloadedState::Require(StateUse use, const char* action) const {
  if (!lane_) return;
  RequirePlace(Place::kHere, action);
  if (!IsHere(use)) {
    throw std::logic_error(who_ + ": " + action + ": expected its " + WordFor(use) +
                           " to be here, they are away from its device");
  }
  if (use == StateUse::kUpdate) lane_->Wait(last_return_);
}

void OffloadedState::MarkChanged(StateUse use) {
  for (Flat& flat : flats_) flat.changed = flat.changed || flat.state.use == use;
}

std::size_t OffloadedState::bytes_away() const {
  std::size_t bytes = 0;
  for (const Flat& flat : flats_) bytes += flat.here ? 0 : flat.state.tensor.nbytes();
  return bytes;
}

}  // namespace troupe
