#include "schedule/microbatch_order.hpp"

#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

#include "layout/at.hpp"
#include "schedule/simulate.hpp"
#include "tests/schedule/random_times.hpp"

namespace troupe {
namespace {

StageGraph EncoderChain(int stages) {
  return StageGraph({{"vision", 1}, {"language", stages - 1}}, {{0, 1, stages + 1}});
}

/// Encoder times that vary by a factor of about 20; the other stages take their mean.
PassTimes SkewedTimes(int stages, int microbatches, Random& random) {
  PassTimes times;
  times.forward_ns.resize(At(stages));
  times.backward_ns.resize(At(stages));
  std::int64_t total = 0;
  for (int unit = 0; unit < microbatches; ++unit) {
    const std::int64_t root = 100 + random.Below(350);
    times.forward_ns.front().push_back(root * root);
    total += root * root;
  }
  for (int stage = 0; stage < stages; ++stage) {
    auto& forward = times.forward_ns[At(stage)];
    if (stage > 0) forward.assign(At(microbatches), total / std::max(microbatches, 1));
    for (const std::int64_t ns : forward) times.backward_ns[At(stage)].push_back(2 * ns);
  }
  return times;
}

PassTimes Ordered(const PassTimes& times, const std::vector<int>& order) {
  PassTimes ordered = times;
  for (std::size_t stage = 0; stage < times.forward_ns.size(); ++stage) {
    for (std::size_t place = 0; place < order.size(); ++place) {
      ordered.forward_ns[stage][place] = times.forward_ns[stage][At(order[place])];
      ordered.backward_ns[stage][place] = times.backward_ns[stage][At(order[place])];
    }
  }
  return ordered;
}

bool IsPermutation(std::vector<int> order, int size) {
  std::vector<int> all(At(size));
  std::iota(all.begin(), all.end(), 0);
  std::ranges::sort(order);
  return order == all;
}

Schedule ScheduleOf(const StageGraph& graph, bool textbook) {
  Schedule schedule = OneForwardOneBackward(LimitsOf(graph));
  for (StageRule& rule : schedule.rules) rule.fixed = textbook;
  return schedule;
}

/// A job of `stages` stages and its evaluator. `textbook`: passes alternate whatever has arrived.
struct Chain {
  Chain(int num_stages, int num_microbatches, bool textbook = false)
      : graph(EncoderChain(num_stages)),
        evaluator(graph, ScheduleOf(graph, textbook), num_microbatches) {}
  std::int64_t MakespanOf(const PassTimes& times, const std::vector<int>& order) {
    return evaluator.Makespan(Ordered(times, order));
  }
  StageGraph graph;
  RoundEvaluator evaluator;
};

std::vector<int> Given(int microbatches) {
  std::vector<int> order(At(microbatches));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

TEST_CASE("Algorithm 2 places the smallest microbatch first and the next smallest last",
          "[schedule]") {
  // 3 stages. The wait before the first backward is 2 * 30 + 2 * 60 = 180 long: of the rest, 90 + 80
  // come nearest to it. Later waits take one microbatch each.
  PassTimes times;
  times.forward_ns = {{50, 10, 90, 20, 80, 30, 60}, {}, {}};
  times.backward_ns = {{}, {}, {}};
  for (const std::int64_t ns : times.forward_ns[0]) times.backward_ns[0].push_back(2 * ns);
  for (const std::size_t stage : {1U, 2U}) {
    times.forward_ns[stage].assign(7, 30);
    times.backward_ns[stage].assign(7, 60);
  }
  const std::vector<int> order = OrderByIntervals(times);
  REQUIRE(IsPermutation(order, 7));
  CHECK(order.front() == 1);
  CHECK(std::vector(order.begin() + 1, order.begin() + 3) == std::vector{2, 4});
  CHECK(std::vector(order.end() - 2, order.end()) == std::vector{3, 5});
}

TEST_CASE("Algorithm 2 orders any number of microbatches on any number of stages", "[schedule]") {
  Random random(3);
  for (int stages = 1; stages <= 6; ++stages) {
    for (int microbatches = 0; microbatches <= 12; ++microbatches) {
      INFO(stages << " stages, " << microbatches << " microbatches");
      CHECK(
          IsPermutation(OrderByIntervals(SkewedTimes(stages, microbatches, random)), microbatches));
    }
  }
}

TEST_CASE("Algorithm 2 and the search come near the best of all orders", "[schedule]") {
  // Algorithm 2 is made for the textbook order. Where a stage runs what has arrived, it may lose
  // against a random order; the search does not.
  for (const bool textbook : {true, false}) {
    Random random(4);
    double heuristic = 0.0;
    double searched = 0.0;
    double any = 0.0;
    constexpr int kDraws = 30;
    for (int draw = 0; draw < kDraws; ++draw) {
      const int microbatches = 6 + draw % 2;
      Chain chain(3, microbatches, textbook);
      const PassTimes times = SkewedTimes(3, microbatches, random);
      std::vector<int> order = Given(microbatches);
      std::int64_t best = RoundEvaluator::kNoBound;
      double sum = 0.0;
      int orders = 0;
      do {
        const std::int64_t ns = chain.MakespanOf(times, order);
        best = std::min(best, ns);
        sum += static_cast<double>(ns);
        ++orders;
      } while (std::ranges::next_permutation(order).found);
      const auto share = [&](const std::vector<int>& of) {
        return static_cast<double>(chain.MakespanOf(times, of)) / static_cast<double>(best);
      };
      heuristic += share(OrderByIntervals(times)) / kDraws;
      searched += share(BestOrder(chain.graph, chain.evaluator, times)) / kDraws;
      any += sum / orders / static_cast<double>(best) / kDraws;
    }
    INFO((textbook ? "textbook" : "by arrival")
         << ", of the optimum: random " << any << ", heuristic " << heuristic << ", search "
         << searched);
    if (textbook) CHECK(heuristic < any - 0.02);
    CHECK(searched < 1.02);
    CHECK(searched < any - 0.05);
  }
}

TEST_CASE("a search is no slower than the given order and than Algorithm 2", "[schedule]") {
  Random random(5);
  for (int draw = 0; draw < 60; ++draw) {
    const int stages = 1 + draw % 5 + (draw % 5 == 0 ? 1 : 0);
    const int microbatches = 1 + static_cast<int>(random.Below(16));
    Chain chain(stages, microbatches);
    PassTimes times = SkewedTimes(stages, microbatches, random);
    for (auto& ns : times.backward_ns.back()) ns = random.Below(200'000);  // any stage may vary
    for (const std::int64_t evaluations : {0, 1, 50}) {
      const auto order = BestOrder(chain.graph, chain.evaluator, times, evaluations);
      REQUIRE(IsPermutation(order, microbatches));
      const std::int64_t ns = chain.MakespanOf(times, order);
      CHECK(ns <= chain.MakespanOf(times, Given(microbatches)));
      CHECK(ns <= chain.MakespanOf(times, OrderByIntervals(times)));
      CHECK(order == BestOrder(chain.graph, chain.evaluator, times, evaluations));
    }
  }
}

TEST_CASE("a search swaps blocks of columns as stages take them", "[schedule]") {
  // Two replicas of an encoder, a column each; one language model takes both, padded.
  const StageGraph graph({{"vision0", 1}, {"vision1", 1}, {"language", 2}}, {{0, 2, 8}, {1, 2, 8}});
  constexpr int kBlocks = 8;
  RoundEvaluator evaluator(graph, OneForwardOneBackward(LimitsOf(graph)), kBlocks);
  Random random(6);
  const auto draw = [&] {
    std::vector<std::int64_t> ns;
    for (int block = 0; block < kBlocks; ++block) ns.push_back(random.Below(100'000));
    return ns;
  };
  const std::vector<std::int64_t> text[2] = {draw(), draw()};
  const std::vector<StageBlocks> stages = {
      {.columns = {0}, .forward_ns = {draw()}, .backward_ns = {draw()}},
      {.columns = {1}, .forward_ns = {draw()}, .backward_ns = {draw()}},
      {.columns = {0, 1},
       .padded = true,
       .forward_ns = {text[0], text[1]},
       .backward_ns = {text[0], text[1]}},
      {.columns = {0, 1}, .forward_ns = {text[0], text[1]}, .backward_ns = {text[0], text[1]}}};
  const Arrangement given = {Given(kBlocks), Given(kBlocks)};
  const Arrangement found = SearchOrder(evaluator, stages, {given}, 400);
  for (const auto& column : found) CHECK(IsPermutation(column, kBlocks));
  CHECK(found[0] != found[1]);
  const PassTimes times = TimesOf(stages, found);
  for (int place = 0; place < kBlocks; ++place) {
    const std::int64_t a = text[0][At(found[0][At(place)])];
    const std::int64_t b = text[1][At(found[1][At(place)])];
    CHECK(times.forward_ns[2][At(place)] == std::max(a, b));
    CHECK(times.forward_ns[3][At(place)] == a + b);
  }
  CHECK(evaluator.Makespan(times) < evaluator.Makespan(TimesOf(stages, given)));
  // A longer search goes on where a shorter one ends. It could get slower if the times that it keeps were
  // not those of its arrangement.
  std::int64_t shorter_ns = RoundEvaluator::kNoBound;
  for (int evaluations = 2; evaluations < 300; ++evaluations) {
    const Arrangement longer = SearchOrder(evaluator, stages, {given}, evaluations);
    const std::int64_t ns = evaluator.Makespan(TimesOf(stages, longer));
    CHECK(ns <= shorter_ns);
    shorter_ns = ns;
  }
}

TEST_CASE("a graph folds into a chain by distance to the sink", "[schedule]") {
  const StageGraph graph({{"vision", 2}, {"audio", 1}, {"language", 1}}, {{0, 2, 8}, {1, 2, 8}});
  const PassTimes times{{{1, 2}, {30, 4}, {5, 60}, {7, 8}}, {{10, 20}, {3, 40}, {50, 6}, {70, 80}}};
  const PassTimes folded = FoldedTimes(graph, times);
  CHECK(folded.forward_ns == std::vector<std::vector<std::int64_t>>{{1, 2}, {30, 60}, {7, 8}});
  CHECK(folded.backward_ns == std::vector<std::vector<std::int64_t>>{{10, 20}, {50, 40}, {70, 80}});
}

}  // namespace troupe
