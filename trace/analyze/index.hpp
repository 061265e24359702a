// A trace with the links that analyses follow: which work a message was, what its receiver handled
// before it, which round it belongs to. Built in one pass over the trace and a sort.
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

/// F, B, and W where weight gradients have passes of their own: what a bubble is the absence of.
bool IsPass(WorkKind kind);

/// The part of `ns`, spread evenly over the time of the pass, that lies in [from_ns, until_ns];
/// 0 of a time that is not known.
std::int64_t PartOfTime(std::int64_t ns, const PassRecord& pass, std::int64_t from_ns,
                        std::int64_t until_ns);

class TraceIndex {
 public:
  /// `trace` must outlive it.
  explicit TraceIndex(const RunTrace& trace);

  const RunTrace& trace() const { return *trace_; }
  const TraceMessage& message(int i) const { return trace_->messages[At(i)]; }
  const TraceWork& work(int i) const { return trace_->work[At(i)]; }

  /// The work that the handling of the message was; -1: none.
  int WorkOf(int message) const { return work_of_[At(message)]; }
  /// What the receiver handled right before; -1: nothing that is known.
  int Previous(int message) const { return previous_[At(message)]; }
  /// The message's own round, else that of its work, else that of its cause; -1: none has one.
  std::int64_t RoundOf(int message) const { return round_of_[At(message)]; }
  /// Messages that the actor has begun to handle, in that order; of -1, which is no actor, none.
  std::span<const int> HandledBy(int actor) const;
  /// Work of a round, by begin.
  std::span<const int> WorkIn(std::int64_t round) const;
  /// Of kind kOther for -1.
  const ActorId& IdOf(int actor) const;
  ActorKind KindOf(int actor) const { return IdOf(actor).kind; }
  /// Where microbatches are in their steps.
  const Places& places() const { return places_; }
  /// Ways between processes that a message took, one behind the other: one if it came from another,
  /// and two more if the bytes that it brings had to be asked for.
  int TripsOf(int message) const;
  /// Where the device that ran it lives; 0 where its actor is not known.
  int ProcessOf(const TraceWork& work) const;
  /// The latest time of anything in the trace.
  std::int64_t end_ns() const { return end_ns_; }

  const std::string& TypeName(int message) const;
  /// "nobody" where no actor is known.
  const std::string& ActorName(int actor) const;
  /// Null: the trace has no such stage.
  const StageId* StageAt(int stage) const;
  /// "vision.s0"; "stage 7" of one that is not in the trace, as of the next.
  std::string StageName(int stage) const;
  std::string ModuleOf(int stage) const;

 private:
  const RunTrace* trace_;
  std::vector<int> work_of_;
  std::vector<int> previous_;
  std::vector<std::int64_t> round_of_;
  std::vector<int> handled_;             ///< messages by receiver, then by begin
  std::vector<std::size_t> handled_at_;  ///< by actor: where its messages begin in handled_
  std::vector<int> work_in_;             ///< by round, then begin
  std::map<int, int> process_of_rank_;
  std::int64_t end_ns_ = 0;
  Places places_;
};

}  // namespace troupe
