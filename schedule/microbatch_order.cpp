#include "schedule/microbatch_order.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "layout/at.hpp"
#include "layout/mix_bits.hpp"

namespace troupe {
namespace {

/// The ends of passes on a chain in the textbook order of 1F1B, as far as microbatches are placed.
class ChainEnds {
 public:
  explicit ChainEnds(const PassTimes& times) : times_(times), stages_(times.forward_ns.size()) {}

  void Place(int microbatch) {
    order_.push_back(At(microbatch));
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
        while (RunNext(stage)) moved = true;
      }
    }
  }

  /// The wait of the first stage before backward `place`, without the forwards that fill it. Before
  /// backward 0 only the path of the first microbatch is known.
  std::int64_t Interval(std::size_t place) const {
    if (stages_.size() == 1) return 0;
    if (place > 0) {
      const std::int64_t ready = stages_[1].backward_ends[place];
      return std::max<std::int64_t>(ready - stages_.front().backward_ends[place - 1], 0);
    }
    std::int64_t path_ns = 0;
    for (std::size_t stage = 1; stage < stages_.size(); ++stage) {
      path_ns += times_.forward_ns[stage][order_.front()];
      path_ns += times_.backward_ns[stage][order_.front()];
    }
    return path_ns;
  }

 private:
  struct Stage {
    std::int64_t free_ns = 0;
    std::vector<std::int64_t> forward_ends;   ///< by place
    std::vector<std::int64_t> backward_ends;  ///< by place
  };

  /// Runs the next pass of a stage if its inputs are there.
  bool RunNext(std::size_t index) {
    Stage& stage = stages_[index];
    const bool last = index + 1 == stages_.size();
    const std::size_t limit = stages_.size() - index;
    const std::size_t forwards = stage.forward_ends.size();
    const std::size_t backwards = stage.backward_ends.size();
    const bool forward = forwards - backwards < limit;
    const std::size_t place = forward ? forwards : backwards;
    const auto& ready = forward
                            ? (index == 0 ? stage.forward_ends : stages_[index - 1].forward_ends)
                            : (last ? stage.forward_ends : stages_[index + 1].backward_ends);
    const bool source = forward && index == 0;
    if (place >= order_.size() || (!source && place >= ready.size())) return false;
    const std::int64_t begin = std::max(stage.free_ns, source ? 0 : ready[place]);
    const auto& takes = forward ? times_.forward_ns : times_.backward_ns;
    stage.free_ns = begin + takes[index][order_[place]];
    (forward ? stage.forward_ends : stage.backward_ends).push_back(stage.free_ns);
    return true;
  }

  const PassTimes& times_;
  std::vector<Stage> stages_;
  std::vector<std::size_t> order_;
};

/// Removes and returns the microbatch of `left` whose forward time on the first stage is nearest to `ns`.
int TakeNearest(std::vector<int>& left, const PassTimes& times, std::int64_t ns) {
  const auto distance = [&](int microbatch) {
    return std::abs(times.forward_ns.front()[At(microbatch)] - ns);
  };
  const auto nearest = std::ranges::min_element(left, {}, distance);
  const int microbatch = *nearest;
  left.erase(nearest);
  return microbatch;
}

/// A swap of two blocks.
struct Swap {
  std::size_t first_column = 0;
  std::size_t end_column = 0;  ///< of one column, or of all
  std::size_t a = 0;
  std::size_t b = 0;
};

/// Swap number `number` of a search.
Swap SwapAt(std::uint64_t number, std::size_t columns, std::size_t places) {
  const std::uint64_t bits = MixBits(number);
  Swap swap{0, columns, bits % places, (bits >> 20) % places};
  const std::uint64_t whole = (bits >> 40) % 2;
  if (columns > 1 && whole == 0) {
    swap.first_column = (bits >> 41) % columns;
    swap.end_column = swap.first_column + 1;
  }
  return swap;
}

/// An arrangement with the times of its passes.
class Arranged {
 public:
  Arranged(const std::vector<StageBlocks>& stages, Arrangement arrangement)
      : stages_(stages),
        arrangement_(std::move(arrangement)),
        times_(TimesOf(stages, arrangement_)) {
    stages_of_.resize(arrangement_.size());
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      for (const int column : stages[stage].columns) stages_of_[At(column)].push_back(stage);
    }
  }

  const PassTimes& times() const { return times_; }
  Arrangement& arrangement() { return arrangement_; }

  void Apply(const Swap& swap) {
    for (std::size_t column = swap.first_column; column < swap.end_column; ++column) {
      std::swap(arrangement_[column][swap.a], arrangement_[column][swap.b]);
    }
    for (std::size_t column = swap.first_column; column < swap.end_column; ++column) {
      for (const std::size_t stage : stages_of_[column]) {
        for (const std::size_t place : {swap.a, swap.b}) SetTimes(stage, place);
      }
    }
  }

 private:
  void SetTimes(std::size_t stage, std::size_t place);

  const std::vector<StageBlocks>& stages_;
  Arrangement arrangement_;
  PassTimes times_;
  std::vector<std::vector<std::size_t>> stages_of_;  ///< by column
};

std::int64_t TimeAt(const StageBlocks& stage, const std::vector<std::vector<std::int64_t>>& blocks,
                    const Arrangement& arrangement, std::size_t place) {
  std::int64_t time = 0;
  for (std::size_t i = 0; i < stage.columns.size(); ++i) {
    const int block = arrangement[At(stage.columns[i])][place];
    const std::int64_t each = blocks[i][At(block)];
    time = stage.padded ? std::max(time, each) : time + each;
  }
  return time;
}

void Arranged::SetTimes(std::size_t stage, std::size_t place) {
  const StageBlocks& blocks = stages_[stage];
  times_.forward_ns[stage][place] = TimeAt(blocks, blocks.forward_ns, arrangement_, place);
  times_.backward_ns[stage][place] = TimeAt(blocks, blocks.backward_ns, arrangement_, place);
}

}  // namespace

std::vector<int> OrderByIntervals(const PassTimes& times) {
  const std::size_t stages = times.forward_ns.size();
  std::vector<int> left(stages == 0 ? 0 : times.forward_ns.front().size());
  std::iota(left.begin(), left.end(), 0);
  if (left.size() <= 1) return left;
  const auto total = [&](int microbatch) {
    std::int64_t ns = 0;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      ns += times.forward_ns[stage][At(microbatch)] + times.backward_ns[stage][At(microbatch)];
    }
    return ns;
  };
  std::ranges::stable_sort(left, {}, total);

  // The smallest microbatch wakes all stages early; the next p - 1 come last, as nothing fills the waits there.
  ChainEnds ends(times);
  std::vector<int> order;
  const auto place = [&](int microbatch) {
    order.push_back(microbatch);
    ends.Place(microbatch);
  };
  place(left.front());
  const std::size_t num_rear = std::min(stages - 1, left.size() - 1);
  const std::vector<int> rear(left.begin() + 1,
                              left.begin() + 1 + static_cast<std::ptrdiff_t>(num_rear));
  left.erase(left.begin(), left.begin() + 1 + static_cast<std::ptrdiff_t>(num_rear));
  std::ranges::sort(left);
  for (std::size_t interval = 0; !left.empty(); ++interval) {
    std::int64_t wait_ns = ends.Interval(interval);
    const std::size_t picks = interval == 0 ? std::max<std::size_t>(stages - 1, 1) : 1;
    std::vector<int> picked;
    for (std::size_t open = std::min(picks, left.size()); open > 0; --open) {
      const auto share = static_cast<std::int64_t>(open);
      picked.push_back(TakeNearest(left, times, wait_ns / share));
      wait_ns -= times.forward_ns.front()[At(picked.back())];
    }
    for (const int microbatch : picked) place(microbatch);
  }
  order.insert(order.end(), rear.begin(), rear.end());
  return order;
}

PassTimes TimesOf(const std::vector<StageBlocks>& stages, const Arrangement& arrangement) {
  PassTimes times;
  const std::size_t places = arrangement.empty() ? 0 : arrangement.front().size();
  for (const StageBlocks& stage : stages) {
    auto& forward = times.forward_ns.emplace_back();
    auto& backward = times.backward_ns.emplace_back();
    for (std::size_t place = 0; place < places; ++place) {
      forward.push_back(TimeAt(stage, stage.forward_ns, arrangement, place));
      backward.push_back(TimeAt(stage, stage.backward_ns, arrangement, place));
    }
  }
  return times;
}

Arrangement SearchOrder(RoundEvaluator& evaluator, const std::vector<StageBlocks>& stages,
                        const std::vector<Arrangement>& starts, std::int64_t evaluations) {
  if (starts.empty()) throw std::invalid_argument("search: expected an order to start from");
  std::size_t best = 0;
  std::int64_t makespan_ns = RoundEvaluator::kNoBound;
  for (std::size_t start = 0; start < starts.size(); ++start) {
    const std::int64_t ns = evaluator.Makespan(TimesOf(stages, starts[start]), makespan_ns);
    if (ns >= makespan_ns) continue;
    makespan_ns = ns;
    best = start;
  }
  Arranged arranged(stages, starts[best]);
  const std::size_t columns = arranged.arrangement().size();
  const std::size_t places = columns == 0 ? 0 : arranged.arrangement().front().size();
  if (places < 2 || makespan_ns == RoundEvaluator::kNoBound) return starts[best];
  for (std::int64_t used = std::ssize(starts); used < evaluations; ++used) {
    const Swap swap = SwapAt(static_cast<std::uint64_t>(used), columns, places);
    if (swap.a == swap.b) continue;
    arranged.Apply(swap);
    // Equal orders are taken, too: the search leaves a plateau through them.
    const std::int64_t ns = evaluator.Makespan(arranged.times(), makespan_ns + 1);
    if (ns <= makespan_ns) {
      makespan_ns = ns;
    } else {
      arranged.Apply(swap);
    }
  }
  return std::move(arranged.arrangement());
}

PassTimes FoldedTimes(const StageGraph& graph, const PassTimes& times) {
  int deepest = 0;
  for (int stage = 0; At(stage) < graph.stages().size(); ++stage) {
    deepest = std::max(deepest, graph.SinkDistance(stage));
  }
  PassTimes folded;
  folded.forward_ns.resize(At(deepest + 1));
  folded.backward_ns.resize(At(deepest + 1));
  const auto fold = [](const std::vector<std::int64_t>& from, std::vector<std::int64_t>& to) {
    to.resize(from.size());
    for (std::size_t unit = 0; unit < from.size(); ++unit)
      to[unit] = std::max(to[unit], from[unit]);
  };
  for (int stage = 0; At(stage) < graph.stages().size(); ++stage) {
    const std::size_t along = At(deepest - graph.SinkDistance(stage));
    fold(times.forward_ns[At(stage)], folded.forward_ns[along]);
    fold(times.backward_ns[At(stage)], folded.backward_ns[along]);
  }
  return folded;
}

std::vector<int> BestOrder(const StageGraph& graph, RoundEvaluator& evaluator,
                           const PassTimes& times, std::int64_t evaluations) {
  std::vector<StageBlocks> stages;
  for (std::size_t stage = 0; stage < times.forward_ns.size(); ++stage) {
    stages.push_back({.columns = {0},
                      .forward_ns = {times.forward_ns[stage]},
                      .backward_ns = {times.backward_ns[stage]}});
  }
  std::vector<int> given(static_cast<std::size_t>(evaluator.microbatches()));
  std::iota(given.begin(), given.end(), 0);
  const std::vector<int> heuristic = OrderByIntervals(FoldedTimes(graph, times));
  return SearchOrder(evaluator, stages, {{given}, {heuristic}}, evaluations).front();
}

}  // namespace troupe
