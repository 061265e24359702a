#include "trace/analyze/why.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "layout/at.hpp"

namespace troupe {
namespace {

/// The ranks that ran the stage's replica, from the trace.
std::set<int> RanksOf(const TraceIndex& index, const ActorId& stage, std::int64_t round) {
  std::set<int> ranks;
  for (const int w : index.WorkIn(round)) {
    const PassRecord& pass = index.work(w).pass;
    if (pass.stage == stage.stage && pass.dp == stage.replica) ranks.insert(pass.rank);
  }
  return ranks;
}

void Consider(const Idle& idle, Idle& longest) {
  if (idle.length_ns() > longest.length_ns()) longest = idle;
}

/// The longest gap of the ranks between two pieces of work, from the beginning of the step on.
Idle LongestOfRanks(const TraceIndex& index, const StepSpan& span, const std::set<int>& ranks) {
  std::map<int, std::int64_t> until;
  Idle longest;
  for (const int w : index.WorkIn(span.round)) {
    const TraceWork& work = index.work(w);
    if (ranks.count(work.pass.rank) == 0) continue;
    std::int64_t& end_ns = until.try_emplace(work.pass.rank, span.begin_ns).first->second;
    if (const int i = work.message; i >= 0) {
      Consider({index.message(i).receiver, i, end_ns, work.pass.begin_ns}, longest);
    }
    end_ns = std::max(end_ns, work.pass.end_ns);
  }
  return longest;
}

Idle LongestOfActor(const TraceIndex& index, const StepSpan& span, int actor) {
  Idle longest;
  std::int64_t end_ns = span.begin_ns;
  for (const int i : index.HandledBy(actor)) {
    const TraceMessage& m = index.message(i);
    if (m.begin_ns > span.end_ns) break;
    Consider({actor, i, end_ns, m.begin_ns}, longest);
    end_ns = std::max(end_ns, m.end_ns);
  }
  return longest;
}

Idle LongestWait(const TraceIndex& index, const StepSpan& span, const std::vector<int>& actors) {
  std::set<int> ranks;
  Idle longest;
  // A stage handles small messages all the time; it is idle when its devices are.
  const bool stages = std::ranges::any_of(
      actors, [&](int actor) { return index.KindOf(actor) == ActorKind::kStage; });
  for (const int actor : actors) {
    const ActorId& id = index.IdOf(actor);
    if (id.kind == ActorKind::kStage) {
      ranks.merge(RanksOf(index, id, span.round));
    } else if (id.kind == ActorKind::kDevice) {
      ranks.insert(id.rank);
    } else if (!stages) {
      Consider(LongestOfActor(index, span, actor), longest);
    }
  }
  Consider(LongestOfRanks(index, span, ranks), longest);
  return longest;
}

/// The segment to blame: the one that most exceeds its usual time, if the excess is at least a
/// fifth of the wait; else the longest one.
int RootIn(Why& why) {
  const std::int64_t wait_ns = why.wait.length_ns();
  const auto excess = [&](std::size_t i) { return why.chain[i].length_ns() - why.usual[i]; };
  std::size_t most = 0;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < why.chain.size(); ++i) {
    if (excess(i) > excess(most)) most = i;
    if (why.chain[i].length_ns() > why.chain[longest].length_ns()) longest = i;
  }
  why.as_usual = excess(most) * 5 < wait_ns;
  return static_cast<int>(why.as_usual ? longest : most);
}

/// The message that the actor handled longest between the two times.
int HandledIn(const TraceIndex& index, int actor, std::int64_t begin_ns, std::int64_t end_ns) {
  int longest = -1;
  std::int64_t longest_ns = 0;
  for (const int i : index.HandledBy(actor)) {
    const TraceMessage& m = index.message(i);
    if (m.begin_ns >= end_ns) break;
    const std::int64_t until_ns = m.end_ns < 0 ? end_ns : std::min(m.end_ns, end_ns);
    const std::int64_t ns = until_ns - std::max(m.begin_ns, begin_ns);
    if (ns > longest_ns) {
      longest = i;
      longest_ns = ns;
    }
  }
  return longest;
}

/// Actors whose idle time matters; others are idle most of the time.
bool Waits(ActorKind kind) {
  return kind == ActorKind::kStage || kind == ActorKind::kDevice || kind == ActorKind::kLeader ||
         kind == ActorKind::kPhase || kind == ActorKind::kUpdate;
}

std::vector<int> BlockedBy(const TraceIndex& index, int message, const Segment& root) {
  std::vector<bool> follows(index.trace().messages.size(), false);
  follows[At(message)] = true;
  for (std::size_t i = At(message) + 1; i < follows.size(); ++i) {
    const int cause = index.trace().messages[i].cause;
    follows[i] = cause >= 0 && follows[At(cause)];
  }
  std::vector<int> blocked;
  for (int actor = 0; At(actor) < index.trace().actors.size(); ++actor) {
    if (actor == root.actor || !Waits(index.KindOf(actor))) continue;
    const auto handled = index.HandledBy(actor);
    const auto next = std::ranges::lower_bound(handled, root.end_ns, {},
                                               [&](int i) { return index.message(i).begin_ns; });
    if (next == handled.end() || !follows[At(*next)]) continue;
    const std::int64_t idle_since = next == handled.begin() ? 0 : index.message(*(next - 1)).end_ns;
    if (idle_since <= root.begin_ns + root.length_ns() / 5) blocked.push_back(actor);
  }
  return blocked;
}

/// The chain and the root of one wait.
Why Explain(const TraceIndex& index, const Usual& usual, const StepSpan& span, const Idle& wait) {
  Why why;
  why.step = span.step;
  why.wait = wait;
  if (wait.message < 0) return why;
  why.chain = ChainTo(index, wait.message, wait.begin_ns, wait.end_ns);
  for (const Segment& segment : why.chain) {
    why.usual.push_back(usual.InStep(segment));
    why.without_core_ns += WithoutCore(index, segment);
  }
  if (!why.chain.empty()) why.root = RootIn(why);
  return why;
}

/// The excess over the usual time, in ns. A wait as usual ranks by its length, below all others.
std::int64_t Badness(const Why& why) {
  if (why.root < 0) return std::numeric_limits<std::int64_t>::min();
  const std::int64_t root_ns = why.chain[At(why.root)].length_ns() - why.usual[At(why.root)];
  if (!why.as_usual) return root_ns;
  return why.wait.length_ns() - std::numeric_limits<std::int64_t>::max() / 2;
}

/// The whole step as a wait: from its beginning to the end of its last work.
Idle WholeStep(const TraceIndex& index, const StepSpan& span) {
  const int last = index.LastWorkIn(span.round);
  const int message = last < 0 ? -1 : index.work(last).message;
  if (message < 0) return {};
  return {index.message(message).receiver, message, span.begin_ns, span.end_ns};
}

/// The wait with the worst root, over all devices.
Why WorstOf(const TraceIndex& index, const Usual& usual, const StepSpan& span) {
  std::set<int> ranks;
  for (const int w : index.WorkIn(span.round)) ranks.insert(index.work(w).pass.rank);
  Why worst;
  worst.step = span.step;
  for (const int rank : ranks) {
    Why why = Explain(index, usual, span, LongestOfRanks(index, span, {rank}));
    if (Badness(why) > Badness(worst)) worst = std::move(why);
  }
  Why path = Explain(index, usual, span, WholeStep(index, span));
  path.whole_step = true;
  const std::int64_t known = std::max<std::int64_t>(0, Badness(worst));
  return Badness(path) > known + known / 2 ? path : worst;
}

}  // namespace

Why ExplainWait(const TraceIndex& index, const Usual& usual, const StepSpan& span,
                const std::vector<int>& actors) {
  Why why = actors.empty() ? WorstOf(index, usual, span)
                           : Explain(index, usual, span, LongestWait(index, span, actors));
  if (why.root < 0) return why;
  const Segment& root = why.chain[At(why.root)];
  if (root.kind == SegmentKind::kQueue) {
    why.busy_with = HandledIn(index, root.actor, root.begin_ns, root.end_ns);
  }
  why.blocked = BlockedBy(index, why.busy_with >= 0 ? why.busy_with : root.message, root);
  return why;
}

const StepSpan& SlowestStep(const Steps& steps) {
  if (steps.all().empty()) throw std::out_of_range("the trace has no training step");
  return *std::ranges::max_element(steps.all(), {}, &StepSpan::length_ns);
}

}  // namespace troupe
