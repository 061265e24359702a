// The time of operations on one rank, by hand.
#include "plan/cost/rank_cost.hpp"

#include <catch2/catch.hpp>

#include "plan/cost/account.hpp"
#include "plan/cost/job_cost.hpp"
#include "plan/model_flops.hpp"
#include "plan/stage_work.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

/// Every rate another prime, so that one taken for another shows.
DeviceModel OddDevice() {
  DeviceModel device;
  device.rates.forward = {.operation_s = 2,
                          .linear_flop_s = 3,
                          .linear_element_s = 5,
                          .attention_flop_s = 7,
                          .attention_score_s = 11,
                          .element_s = 13};
  device.rates.backward = {.operation_s = 17,
                           .linear_flop_s = 19,
                           .linear_element_s = 23,
                           .attention_flop_s = 29,
                           .attention_score_s = 31,
                           .element_s = 37};
  device.topology = {.devices_per_node = 4,
                     .inside = {.latency_s = 41, .bytes_per_s = 0.5},
                     .between = {.latency_s = 43, .bytes_per_s = 0.25}};
  device.sum_byte_s = 47;
  device.collective_s = 53;
  return device;
}

RankShare Trained(Layout layout) {
  return {.layout = layout, .cp = layout.cp, .weight_gradient = true, .input_gradient = true};
}

template <class Add>
PassCost CostOn(const DeviceModel& device, const RankShare& share, Add add) {
  RankCost rank(device, device.rates, share);
  add(rank);
  return rank.cost();
}

template <class Add>
PassCost CostOf(const RankShare& share, Add add) {
  return CostOn(OddDevice(), share, add);
}

constexpr LinearWork kColumn{.rows = 6, .out = 8, .in = 10, .cut = Cut::kRows};
constexpr LinearWork kRow{.rows = 6, .out = 8, .in = 10, .cut = Cut::kColumns};

double ProductTime(double m, double n, double k, bool forward) {
  const double sizes = m * n + m * k + n * k;
  return forward ? 2 * m * n * k * 3 + sizes * 5 : 2 * m * n * k * 19 + sizes * 23;
}

}  // namespace

TEST_CASE("a linear layer takes its products, and its backward one for each gradient", "[plan]") {
  const auto add = [](WorkList& work) { work.AddLinear(kColumn); };
  const PassCost cost = CostOf(Trained({}), add);
  CHECK(cost.forward[Spent::kLinears] == ProductTime(6, 8, 10, true));
  CHECK(cost.forward[Spent::kStarting] == 2);
  CHECK(cost.inputs[Spent::kLinears] == ProductTime(6, 10, 8, false));
  CHECK(cost.weights[Spent::kLinears] == ProductTime(8, 10, 6, false));
  CHECK(cost.forward.communication() == 0);

  RankShare frozen = Trained({});
  frozen.weight_gradient = false;
  CHECK(CostOf(frozen, add).weights.total() == 0);
  CHECK(CostOf(frozen, add).inputs.total() == cost.inputs.total());
  frozen.input_gradient = false;
  CHECK(CostOf(frozen, add).backward_s() == 0);
  RankShare first = Trained({});
  first.input_gradient = false;
  CHECK(CostOf(first, add).inputs.total() == cost.inputs.total());
  const auto begin = [](WorkList& work) {
    LinearWork linear = kColumn;
    linear.first = true;
    work.AddLinear(linear);
  };
  CHECK(CostOf(first, begin).inputs.total() == 0);
}

TEST_CASE("tp divides a linear layer, and its ranks gather and sum rows", "[plan]") {
  const auto column = [](WorkList& work) { work.AddLinear(kColumn); };
  const auto row = [](WorkList& work) { work.AddLinear(kRow); };
  // Rings of two ranks: 6 rows of 10 or 8 elements of 4 bytes.
  const double gather_in = 53 + 41 + 6 * 10 * 4 / 2 / 0.5;
  const double gather_out = 53 + 41 + 6 * 8 * 4 / 2 / 0.5;
  const double sum_in = gather_in + 6 * 10 * 4 * 47;
  const double sum_out = gather_out + 6 * 8 * 4 * 47;

  const PassCost cut = CostOf(Trained({.tp = 2}), column);
  CHECK(cut.forward[Spent::kLinears] == ProductTime(6, 4, 10, true));
  CHECK(cut.forward[Spent::kTensor] == gather_in);
  CHECK(cut.inputs[Spent::kTensor] == sum_in);
  CHECK(cut.weights[Spent::kTensor] == gather_in);
  const PassCost summed = CostOf(Trained({.tp = 2}), row);
  CHECK(summed.forward[Spent::kLinears] == ProductTime(6, 8, 5, true));
  CHECK(summed.forward[Spent::kTensor] == sum_out);
  CHECK(summed.inputs[Spent::kTensor] == gather_out);
  CHECK(summed.weights[Spent::kTensor] == 0);

  const PassCost whole = CostOf(Trained({.tp = 2, .sp = false}), column);
  CHECK(whole.forward[Spent::kTensor] == 0);
  CHECK(whole.inputs[Spent::kTensor] == sum_in + gather_in);
  CHECK(whole.weights[Spent::kTensor] == 0);
  CHECK(CostOf(Trained({.tp = 2, .sp = false}), row).forward[Spent::kTensor] ==
        sum_out + gather_out);
  // Eight ranks are on two nodes.
  const PassCost far = CostOf(Trained({.tp = 8}), column);
  CHECK(far.forward[Spent::kTensor] == 7 * (53 + 43 + 6 * 10 * 4 / 8 / 0.25));
}

TEST_CASE("ranks share key and value heads when there are fewer", "[plan]") {
  const auto add = [](WorkList& work) {
    work.AddLinear({.rows = 6, .out = 24, .in = 10, .cut = Cut::kRows, .kv_out = 8, .kv_heads = 2});
  };
  CHECK(CostOf(Trained({.tp = 2}), add).forward[Spent::kLinears] == ProductTime(6, 12, 10, true));
  CHECK(CostOf(Trained({.tp = 4}), add).forward[Spent::kLinears] ==
        ProductTime(6, 16 / 4 + 8 / 2, 10, true));
}

TEST_CASE("attention along cp hides what it exchanges, if keys and values go around a ring",
          "[plan]") {
  const auto add = [](WorkList& work) {
    work.AddAttention({.rows = 8, .pairs = 36, .heads = 2, .width = 6, .kv_width = 3});
  };
  const PassCost alone = CostOf(Trained({}), add);
  CHECK(alone.forward[Spent::kAttention] == 36 * (4 * 6 * 7 + 2 * 11));
  CHECK(alone.inputs[Spent::kAttention] == 36 * (10 * 6 * 29 + 2 * 31));
  CHECK(alone.weights.total() == 0);

  const PassCost ring = CostOf(Trained({.cp = 2}), add);
  CHECK(ring.forward[Spent::kAttention] == alone.forward[Spent::kAttention] / 2);
  CHECK(ring.forward[Spent::kContext] == 0);
  const double once = 41 + 2 * 3 * 8 * 4 / 2 / 0.5;
  CHECK(ring.hidden_s == 3 * once);
  RankShare gathers = Trained({.cp = 2});
  gathers.ring = false;
  CHECK(CostOf(gathers, add).forward[Spent::kContext] == once);
  CHECK(CostOf(gathers, add).inputs[Spent::kContext] == 2 * once);
  CHECK(CostOf(gathers, add).hidden_s == 0);
}

TEST_CASE("what the software hides of collectives takes no time", "[plan]") {
  const auto add = [](WorkList& work) {
    work.AddLinear(kColumn);
    work.AddAttention({.rows = 8, .pairs = 36, .heads = 2, .width = 6, .kv_width = 4});
  };
  RankShare share = Trained({.tp = 2, .cp = 2});
  share.ring = false;
  const PassCost all = CostOf(share, add);
  DeviceModel device = OddDevice();
  device.exposed = {.tensor = 0.25, .context = 0.5};
  const PassCost part = CostOn(device, share, add);
  const auto along = [](const PassCost& cost, Spent on) {
    return cost.forward[on] + cost.inputs[on] + cost.weights[on];
  };
  CHECK(all.hidden_s == 0);
  CHECK(along(part, Spent::kTensor) == 0.25 * along(all, Spent::kTensor));
  CHECK(along(part, Spent::kContext) == 0.5 * along(all, Spent::kContext));
  CHECK(part.hidden_s == 0.75 * along(all, Spent::kTensor) + 0.5 * along(all, Spent::kContext));
  CHECK(part.forward.total() - part.forward.communication() ==
        all.forward.total() - all.forward.communication());
  // A ring hides its exchange here; no share of it is left.
  share.ring = true;
  CHECK(CostOn(device, share, add).forward[Spent::kContext] == 0);
}

TEST_CASE("a group with several ranks in a node may use the adapter of each between nodes",
          "[plan]") {
  Topology topology{.devices_per_node = 8,
                    .inside = {.latency_s = 2, .bytes_per_s = 900},
                    .between = {.latency_s = 3, .bytes_per_s = 10}};
  const auto rate = [&](int ranks, int stride) {
    return topology.LinkOf(ranks, stride).bytes_per_s;
  };
  CHECK(rate(4, 4) == 10);
  topology.rails = 1.0;
  CHECK(rate(4, 2) == 900);
  CHECK(rate(8, 2) == 40);
  CHECK(topology.LinkOf(8, 2).latency_s == 3);
  CHECK(rate(4, 4) == 20);
  CHECK(rate(2, 8) == 10);
  CHECK(rate(2, 16) == 10);
  topology.rails = 0.5;
  CHECK(rate(8, 2) == 20);
}

TEST_CASE("what is recomputed takes its forward again in the backward", "[plan]") {
  const auto add = [](WorkList& work) {
    work.Enter(LayerPart::kMlpUp);
    work.AddElements(NormWork(6, 10));
    work.AddLinear(kColumn);
    work.Enter(LayerPart::kMlp);
    work.AddLinear(kRow);
    work.Enter(std::nullopt);
    work.AddLinear(kRow);
  };
  const PassCost kept = CostOf(Trained({.tp = 2}), add);
  const auto again = [&](Recompute recompute) {
    RankShare share = Trained({.tp = 2});
    share.recompute = recompute;
    const PassCost cost = CostOf(share, add);
    CHECK(cost.forward.total() == kept.forward.total());
    return cost.inputs[Spent::kRecompute];
  };
  const auto up = [](WorkList& work) {
    work.AddElements(NormWork(6, 10));
    work.AddLinear(kColumn);
  };
  const auto down = [](WorkList& work) { work.AddLinear(kRow); };
  const double up_s = CostOf(Trained({.tp = 2}), up).forward.total();
  const double down_s = CostOf(Trained({.tp = 2}), down).forward.total();
  CHECK(again({}) == 0);
  CHECK(again({LayerPart::kAttention}) == 0);
  CHECK(again({LayerPart::kMlpUp}) == up_s);
  CHECK(again({LayerPart::kMlp}) == up_s + down_s);
  CHECK(again({LayerPart::kLayer}) == up_s + down_s);
}

TEST_CASE("experts divide rows and weights, and send rows there and back", "[plan]") {
  const ExpertWork experts{.rows = 16, .width = 6, .hidden = 8, .per_token = 2, .count = 4};
  const auto add = [&](WorkList& work) {
    work.Enter(LayerPart::kMlpUp);
    work.AddExperts(experts);
  };
  const double router = ProductTime(16, 4, 6, true);
  const PassCost alone = CostOf(Trained({}), add);
  CHECK(alone.forward[Spent::kLinears] ==
        router + 4 * (ProductTime(8, 16, 6, true) + ProductTime(8, 6, 8, true)));
  CHECK(alone.forward[Spent::kElements] == 3 * 32 * 8 * 13);
  CHECK(alone.forward[Spent::kExperts] == 0);
  // A replica has these rows; with four that share its experts it keeps one of them and gets as
  // many rows.
  const PassCost shared = CostOf(Trained({.dp = 4, .ep = 4}), add);
  CHECK(shared.forward[Spent::kLinears] ==
        router + ProductTime(32, 16, 6, true) + ProductTime(32, 6, 8, true));
  const double there = 3 * (53 + 41 + 32 * 6 * 4 / 4 / 0.5);
  CHECK(shared.forward[Spent::kExperts] == 2 * there);
  CHECK(shared.inputs[Spent::kExperts] == 2 * there);
  // tp divides the rows that are routed; etp each expert, which gets the rows of both its ranks.
  const PassCost parts = CostOf(Trained({.tp = 2, .ep = 1, .etp = 2}), add);
  CHECK(parts.forward[Spent::kLinears] ==
        ProductTime(8, 4, 6, true) + 4 * (ProductTime(8, 8, 6, true) + ProductTime(8, 6, 4, true)));

  // mlp.up computes again what leads to the inputs of the last linear layer, mlp all.
  RankShare up = Trained({.dp = 4, .ep = 4});
  up.recompute = {LayerPart::kMlpUp};
  const double first = router + ProductTime(32, 16, 6, true) + 3 * 32 * 8 * 13 + 2 * 2;
  CHECK(CostOf(up, add).inputs[Spent::kRecompute] == first);
  up.recompute = {LayerPart::kMlp};
  CHECK(CostOf(up, add).inputs[Spent::kRecompute] ==
        first + ProductTime(32, 6, 8, true) + 2 + 2 * there);
}

TEST_CASE("on a device of flops alone a stage takes its operations, divided among its ranks",
          "[plan]") {
  Config config = SmallModulesConfig();
  config.modules[2].layout = {.tp = 2};
  config.modules[2].ranks = {1, 2};
  const DeviceModel device = DeviceOfFlops(1e3);
  for (const ModuleConfig& module : config.modules) {
    INFO(module.name);
    const StepShape shape = MostWorkOfUnit(config, module);
    const PassFlops flops = StageFlops(config, module.name, 0, shape);
    const PassCost cost = CostOfStage(config, device, module.name, 0, shape);
    CHECK(cost.forward.total() == Approx(flops.forward / module.layout.tp / 1e3));
    // Attention computes its scores again: five products for two.
    CHECK(cost.weights.total() == Approx(flops.weights / module.layout.tp / 1e3));
    CHECK(cost.backward_s() >= flops.backward / module.layout.tp / 1e3);
    CHECK(cost.backward_s() < 1.2 * flops.backward / module.layout.tp / 1e3);
  }
}

TEST_CASE("the cost of a job is its simulation and what follows it", "[plan]") {
  Config config = SmallModulesConfig();
  config.modules[0].ranks = {0, 1};
  config.modules[0].layout = {.dp = 2};
  config.modules[1].ranks = {2};
  config.modules[2].ranks = {3, 4};
  config.modules[2].layout = {.pp = 2};
  config.cluster.ranks = 5;
  config.schedule.micro_batch_size = 2;
  config.schedule.microbatches = 3;
  DeviceModel device = DeviceOfFlops(1e9);
  const JobPlan plan(config);
  const JobCost free = CostOfJob(plan, device);
  CHECK(free.step_s == Approx(1e-9 * static_cast<double>(free.passes.makespan_ns)).epsilon(1e-6));
  device.update_parameter_s = 1e-3;
  device.step_s = 5.0;
  const JobCost updated = CostOfJob(plan, device);
  CHECK(updated.passes.makespan_ns == free.passes.makespan_ns);
  double most_s = 0.0;
  for (const UpdateCost& update : updated.updates) most_s = std::max(most_s, update.update_s);
  CHECK(most_s > 0.1);
  CHECK(updated.step_s == Approx(free.step_s + 5.0 + most_s).epsilon(1e-6));
  device.topology.between = device.topology.inside = {.latency_s = 1e-3};
  const JobCost linked = CostOfJob(plan, device);
  for (const std::int64_t ns : linked.link_ns) CHECK(ns == 1'000'000);
  CHECK(linked.passes.makespan_ns > free.passes.makespan_ns);
  CHECK(linked.updates[0].reduce_s > 0);  // two replicas
  double accounted_s = 0.0;
  for (const AccountLine& line : AccountOf(plan, linked)) {
    INFO(line.what);
    CHECK(line.seconds > 0.0);
    accounted_s += line.seconds;
  }
  CHECK(accounted_s == Approx(linked.step_s).epsilon(1e-6));
  CHECK(linked.updates[1].reduce_s == 0);
  device.exposed.gradients = 0.5;
  const JobCost hidden = CostOfJob(plan, device);
  CHECK(hidden.updates[0].reduce_s == linked.updates[0].reduce_s);
  CHECK(hidden.updates[0].exposed_s == 0.5 * linked.updates[0].exposed_s);
  CHECK(hidden.updates[0].gather_s == 0.5 * linked.updates[0].gather_s);
}

}  // namespace troupe
