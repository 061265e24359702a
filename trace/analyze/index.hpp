// Indexes a trace for analyses: the work of each message, the message that its receiver handled
// before it, and its round. Built in one pass over the trace and a sort.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "layout/at.hpp"
#include "trace/analyze/places.hpp"
#include "trace/run_trace.hpp"

namespace troupe {

/// The part of `ns`, spread evenly over the pass, that is in [from_ns, until_ns]; 0 for an unknown
/// time.
std::int64_t PartOfTime(std::int64_t ns, const PassRecord& pass, std::int64_t from_ns,
                        std::int64_t until_ns);

class TraceIndex {
 public:
  /// `trace` must outlive it.
  explicit TraceIndex(const RunTrace& trace);

  const RunTrace& trace() const { return *trace_; }
  const TraceMessage& message(int i) const { return trace_->messages[At(i)]; }
  const TraceWork& work(int i) const { return trace_->work[At(i)]; }

  /// The work that the message's handler ran; -1: none.
  int WorkOf(int message) const { return work_of_[At(message)]; }
  /// The message that the receiver handled right before; -1: unknown.
  int Previous(int message) const { return previous_[At(message)]; }
  /// The round of the message, else of its work, else of its cause; -1: unknown.
  std::int64_t RoundOf(int message) const { return round_of_[At(message)]; }
  /// Messages that the actor has begun to handle, in that order; empty for actor -1.
  std::span<const int> HandledBy(int actor) const {
    return actor < 0 ? std::span<const int>() : handled_[At(actor)];
  }
  /// Work of a round, by begin.
  std::span<const int> WorkIn(std::int64_t round) const;
  /// The work of a round that ended last; -1: none.
  int LastWorkIn(std::int64_t round) const;
  /// Has kind kOther for actor -1.
  const ActorId& IdOf(int actor) const;
  ActorKind KindOf(int actor) const { return IdOf(actor).kind; }
  /// The places of microbatches in their steps.
  const Places& places() const { return places_; }
  /// Whether the sender is in another process than the receiver.
  bool IsBetweenProcesses(int message) const;
  /// Sequential trips between processes for a message: one if it came from another process, and two
  /// more if its bytes had to be requested.
  int TripsOf(int message) const;
  /// The link that the message crosses; null: none.
  const TraceLink* LinkOf(int message) const;
  /// The process of the device that ran it; 0 if its actor is unknown.
  int ProcessOf(const TraceWork& work) const;
  /// The latest time in the trace.
  std::int64_t end_ns() const { return end_ns_; }

  const std::string& TypeName(int message) const;
  /// "unknown actor" for an actor that is not in the trace.
  const std::string& ActorName(int actor) const;
  /// Null: the trace has no such stage.
  const StageId* StageAt(int stage) const;
  /// "vision.s0"; "stage 7" if the trace does not have it. ModuleOf does the same.
  std::string StageName(int stage) const;
  std::string ModuleOf(int stage) const;

 private:
  const RunTrace* trace_;
  std::vector<int> work_of_;
  std::vector<int> previous_;
  std::vector<std::int64_t> round_of_;
  std::vector<std::vector<int>> handled_;  ///< messages by receiver, then by begin
  std::vector<int> work_in_;               ///< by round, then begin
  std::map<int, int> process_of_rank_;
  std::int64_t end_ns_ = 0;
  Places places_;
};

}  // namespace troupe
