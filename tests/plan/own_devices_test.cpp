// Encoders on devices of another kind.
#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/cost/account.hpp"
#include "plan/cost/device_file.hpp"
#include "plan/search/nearest.hpp"
#include "plan/search/planner.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

/// Distinct rates for every direction, so that none can stand for another.
DeviceModel SomeDevice(double flops_per_s) {
  DeviceModel device = DeviceOfFlops(flops_per_s);
  device.topology.devices_per_node = 4;
  device.topology.inside = {.latency_s = 1e-6, .bytes_per_s = 1e9};
  device.topology.between = {.latency_s = 3e-6, .bytes_per_s = 2e8};
  device.update_parameter_s = 10.0 / flops_per_s;
  device.message_s = 2e-6;
  device.peak_flops_per_s = 2.0 * flops_per_s;
  return device;
}

Config SmallJob() {
  Config config = SmallModulesConfig();
  config.schedule.micro_batch_size = 4;
  config.schedule.microbatches = 8;
  return config;
}

/// The encoder "vision" runs on separate ranks, and the other encoder inside the language model.
PlannedJob VisionApart(const Config& config, bool on_own_devices) {
  PlannedJob job;
  job.sink = {.layout = {.dp = 4}, .micro_batch_size = 1, .microbatches = 8};
  for (const ModuleConfig& module : config.modules) {
    if (module.name == config.Sink().name) continue;
    if (module.name == "vision") {
      job.encoders.push_back({Placement::kDisjoint, {.pp = 2, .dp = 2}, {}, on_own_devices});
    } else {
      job.encoders.push_back({});
      job.sink.inlined |= 1U << (job.encoders.size() - 1);
    }
  }
  job.ranks = 8;
  job.node_sizes = {4, 4};
  return job;
}

JobDevices WithOwn(const DeviceModel& main, const DeviceModel& own, int number) {
  JobDevices devices(main);
  devices.own = {{"vision", {own, number}}};
  return devices;
}

}  // namespace

TEST_CASE("devices of another kind that are like the others make no difference", "[plan]") {
  const Config config = SmallJob();
  const DeviceModel device = SomeDevice(1e9);
  const Plan alike = PlanOf(config, VisionApart(config, true), WithOwn(device, device, 4));
  const Plan plain = PlanOf(config, VisionApart(config, false), device);
  CHECK(alike.config == plain.config);
  CHECK(alike.cost.step_s == plain.cost.step_s);
  CHECK(alike.bytes == plain.bytes);
  CHECK(alike.use.mfu == Approx(plain.use.mfu));
}

TEST_CASE("a module takes as long as its own devices do", "[plan]") {
  const Config config = SmallJob();
  const DeviceModel device = SomeDevice(1e9);
  const DeviceModel slow = SomeDevice(0.25e9);
  const Plan mixed = PlanOf(config, VisionApart(config, true), WithOwn(device, slow, 4));
  const Plan fast = PlanOf(config, VisionApart(config, true), WithOwn(device, device, 4));
  const JobPlan plan(mixed.config);
  for (const StagePlan& stage : plan.stages()) {
    const std::string& name = plan.ModuleOf(stage.module).config->name;
    const auto at = static_cast<std::size_t>(stage.stage);
    INFO(name);
    const double times = name == "vision" ? 4.0 : 1.0;
    CHECK(mixed.cost.stages[at].Of(0).backward_s() ==
          Approx(times * fast.cost.stages[at].Of(0).backward_s()));
    CHECK(mixed.cost.updates[at].update_s == Approx(times * fast.cost.updates[at].update_s));
  }
  // Of 8 devices 4 have a quarter of the peak.
  const double flops = fast.use.mfu * fast.cost.step_s * 8 * 2e9;
  CHECK(mixed.use.mfu == Approx(flops / (mixed.cost.step_s * (4 * 2e9 + 4 * 0.5e9))));
}

TEST_CASE("tensors between devices of two kinds take the slower link between nodes", "[plan]") {
  const Config config = SmallJob();
  const DeviceModel device = SomeDevice(1e9);
  DeviceModel far = device;
  far.topology.between = {.latency_s = 5e-6, .bytes_per_s = 1e8};
  const JobPlan plan(Applied(config, VisionApart(config, true)));
  const auto near_ns = LinkTimes(plan, WithOwn(device, device, 4));
  const auto far_ns = LinkTimes(plan, WithOwn(device, far, 4));
  const auto back_ns = LinkTimes(plan, WithOwn(far, device, 4));
  for (std::size_t i = 0; i < near_ns.size(); ++i) {
    const StageLink& link = plan.graph().links()[i];
    if (link.edge < 0) {
      CHECK(far_ns[i] == near_ns[i]);  // vision's stages are on the same node
    } else {
      CHECK(far_ns[i] > near_ns[i] + near_ns[i] / 2);
      CHECK(far_ns[i] == back_ns[i]);
    }
  }
}

TEST_CASE("the nodes of devices of another kind begin with their first rank", "[plan]") {
  const Config config = SmallJob();
  const DeviceModel device = SomeDevice(1e9);
  PlannedJob job = VisionApart(config, true);
  job.sink.layout.dp = 2;  // vision has ranks 2 to 5, and nodes have four
  job.sink.micro_batch_size = 2;
  const JobPlan plan(Applied(config, job));
  const auto own_ns = LinkTimes(plan, WithOwn(device, device, 4));
  const auto main_ns = LinkTimes(plan, device);
  std::size_t hops = 0;
  for (std::size_t i = 0; i < own_ns.size(); ++i) {
    if (plan.graph().links()[i].edge >= 0) continue;
    ++hops;
    CHECK(own_ns[i] < main_ns[i]);
  }
  CHECK(hops > 0);
}

TEST_CASE("the account covers the devices of the language model", "[plan]") {
  const Config config = SmallJob();
  const DeviceModel device = SomeDevice(1e9);
  // Vision takes longest by far.
  const Plan plan = PlanOf(config, VisionApart(config, true), WithOwn(device, SomeDevice(1e6), 4));
  double sum_s = 0.0;
  double waiting_s = 0.0;
  double language_s = 0.0;
  for (const AccountLine& line : AccountOf(JobPlan(plan.config), plan.cost)) {
    INFO(line.what);
    CHECK(!line.what.starts_with("vision"));
    sum_s += line.seconds;
    if (line.what == "waiting") waiting_s = line.seconds;
    if (line.what.starts_with("language: ")) language_s += line.seconds;
  }
  CHECK(sum_s == Approx(plan.cost.step_s));
  CHECK(language_s > 0.0);
  CHECK(waiting_s > 10.0 * language_s);
}

TEST_CASE("a plan fits if each kind of device has the memory", "[plan]") {
  const Config config = SmallJob();
  DeviceModel device = SomeDevice(1e9);
  device.memory_bytes = 1e9;
  DeviceModel small = device;
  const PlannedJob job = VisionApart(config, true);
  REQUIRE(PlanOf(config, job, WithOwn(device, small, 4)).fits());
  small.memory_bytes = 1e3;
  const Plan full = PlanOf(config, job, WithOwn(device, small, 4));
  CHECK(!full.fits());
  CHECK(full.fullest.of_bytes == 1e3);
  CHECK(full.bytes > full.fullest.bytes);  // the language model holds more, and has the room
}

TEST_CASE("an encoder gets only devices that make the step shorter", "[plan]") {
  const Config config = SmallJob();
  const DeviceModel main = SomeDevice(1e9);
  const double speed = GENERATE(0.2e9, 1e9, 5e9);
  const DeviceModel own = SomeDevice(speed);
  const int number = 12;
  const auto jobs = SearchSpace(config, WithOwn(main, own, number), {.ranks = 8}).Best(1.3);
  REQUIRE(!jobs.empty());
  for (const PlannedJob& job : jobs) {
    const Config applied = Applied(config, job);
    const ModuleConfig& vision = FindModule(applied, "vision");
    const int used = vision.layout.num_ranks();
    CHECK(used <= number);
    CHECK(vision.ranks.back() == job.ranks - 1);  // after all others
    CHECK(job.ranks - used <= 8);
    CHECK(std::reduce(job.node_sizes.begin(), job.node_sizes.end()) == job.ranks);
    // Nodes have devices of one kind.
    int begin = 0;
    for (const int size : job.node_sizes) {
      CHECK(!(begin < vision.ranks.front() && begin + size > vision.ranks.front()));
      begin += size;
    }
  }
  const PlannedJob& best = jobs.front();
  const int used = FindModule(Applied(config, best), "vision").layout.num_ranks();
  // With fewer, the best step is longer; with more it is not shorter.
  if (speed < 1e9) REQUIRE(used > 1);
  if (used > 1) {
    const auto fewer = SearchSpace(config, WithOwn(main, own, used - 1), {.ranks = 8}).Best(1.0);
    REQUIRE(!fewer.empty());
    CHECK(fewer.front().step_s > 1.0005 * best.step_s);
  }
  const auto same = SearchSpace(config, WithOwn(main, own, used), {.ranks = 8}).Best(1.0);
  REQUIRE(!same.empty());
  CHECK(same.front().step_s <= 1.003 * best.step_s);
}

TEST_CASE("two encoders have nodes of their own, in the order of the file", "[plan]") {
  const Config config = SmallJob();
  const DeviceModel main = SomeDevice(1e9);
  DeviceModel pairs = SomeDevice(0.1e9);
  pairs.topology.devices_per_node = 2;
  JobDevices devices = WithOwn(main, pairs, 4);
  devices.own["audio"] = {SomeDevice(0.2e9), 8};
  const auto jobs = SearchSpace(config, devices, {.ranks = 4}).Best(1.1);
  REQUIRE(!jobs.empty());
  for (const PlannedJob& job : jobs) {
    const Config applied = Applied(config, job);
    const auto ranks_of = [&](const std::string& name) { return FindModule(applied, name).ranks; };
    const auto vision = ranks_of("vision");
    const auto audio = ranks_of("audio");
    CHECK(vision.size() <= 4);
    CHECK(audio.size() <= 8);
    CHECK(vision.front() == static_cast<int>(ranks_of("language").size()));
    CHECK(audio.front() == vision.back() + 1);
    CHECK(audio.back() + 1 == applied.cluster.ranks);
    std::vector<int> begins;  // of nodes
    int next = 0;
    for (const ClusterNode& node : applied.cluster.nodes) {
      begins.push_back(next);
      next += node.devices;
    }
    for (const int first : {vision.front(), audio.front()}) {
      CHECK(std::ranges::find(begins, first) != begins.end());
    }
    const Plan plan = PlanOf(config, job, devices);
    CHECK(plan.own_ranks ==
          std::vector<int>{static_cast<int>(vision.size()), static_cast<int>(audio.size())});
    CHECK(plan.cost.step_s == Approx(job.step_s).epsilon(0.15));
  }
}

TEST_CASE("an encoder that does not fit on its own devices gets suggestions for these", "[plan]") {
  const Config config = LoadConfig("configs/vlm_7b.toml").config;
  const auto devices_of = [](const std::string& name, const Config& of) {
    DeviceModel tiny = ReadDevice("l40s-48g", of.run);
    tiny.memory_bytes = 1e6;
    return WithOwn(ReadDevice(name, of.run), tiny, 8);
  };
  const JobDevices devices = devices_of("h100-80g", config);
  REQUIRE(BestPlans(SearchSpace(config, devices, {.ranks = 8}), config, devices, 1).best.empty());
  const auto changes = NearestChanges(config, 8, {"h100-80g", KnownDevices(), devices_of});
  REQUIRE(changes.size() == 1);
  CHECK(changes.front().argument == "without --device-of vision");

  const auto few_of = [](const std::string& name, const Config& of) {
    DeviceModel small = ReadDevice("l40s-48g", of.run);
    small.memory_bytes = 3e9;
    return WithOwn(ReadDevice(name, of.run), small, 1);
  };
  const auto more = NearestChanges(config, 8, {"h100-80g", KnownDevices(), few_of});
  REQUIRE(more.size() == 2);
  CHECK(more.front().argument == "--device-of vision=l40s-48g:4");
}

}  // namespace troupe
