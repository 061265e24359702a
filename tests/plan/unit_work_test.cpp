// The cost of a step whose samples are known.
#include "plan/cost/unit_work.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/cost/device_file.hpp"
#include "plan/cost/job_cost.hpp"
#include "plan/cost/sample_list.hpp"
#include "plan/cost/stage_price.hpp"
#include "plan/stage_work.hpp"

namespace troupe {
namespace {

Config WithSettings(const std::string& file, const std::vector<std::string>& settings = {}) {
  return LoadConfig("configs/" + file + ".toml", settings).config;
}

PlacedSamples FullBatch(const Config& config) {
  const auto places = static_cast<std::size_t>(config.global_batch());
  return PlacedSamples(places, {FullSamples(config, config.Sink(), 1)});
}

}  // namespace

TEST_CASE("a step of full samples costs as much as one of the most work", "[plan]") {
  const std::string file =
      GENERATE("shapes", "shapes_colocated", "shapes_inline", "shapes_two_encoders");
  const JobPlan plan(WithSettings(file));
  const DeviceModel device = ReadDevice("h100-80g", plan.config().run);
  const JobCost known = CostOfJob(plan, device, FullBatch(plan.config()));
  const JobCost most = CostOfJob(plan, device);
  INFO(file);
  CHECK(known.step_s == Approx(most.step_s).epsilon(1e-9));
  CHECK(known.link_ns == most.link_ns);
}

TEST_CASE("a replica that pads computes its longest sample for each", "[plan]") {
  Config config = WithSettings("shapes");
  const JobPlan plan(config);
  PlacedSamples samples = FullBatch(config);
  for (auto& place : samples) place.front().tokens = 10;
  samples[3].front().tokens = 40;  // of the 8 samples of the first microbatch
  const int language = 1;
  const auto first = WorkOfUnit(plan, samples, language, 0, 0);
  REQUIRE(first.size() == 1);
  CHECK(first.front().samples == 8);
  CHECK(first.front().tokens == 40);
  CHECK(WorkOfUnit(plan, samples, language, 0, 1).front().tokens == 10);

  // Cut over cp it does not pad: each length counts by itself.
  const JobPlan cut(WithSettings("shapes", {"modules.language.layout={cp=4}"}));
  const auto shapes = WorkOfUnit(cut, samples, language, 0, 0);
  REQUIRE(shapes.size() == 2);
  CHECK(shapes.front().samples == 7);
  CHECK(shapes.back().tokens == 40);
}

TEST_CASE("the replica with the most work decides the step", "[plan]") {
  const JobPlan plan(WithSettings(
      "shapes_inline", {"modules.language.layout={dp=4}", "schedule.micro_batch_size=2"}));
  const DeviceModel device = DeviceOfFlops(1e9);
  PlacedSamples samples = FullBatch(plan.config());
  for (auto& place : samples) place.front().tokens = 24;
  const double all_short = CostOfJob(plan, device, samples).passes_s;
  // Places 4 and 5 of each microbatch belong to the third replica.
  samples[4].front().tokens = 96;
  const double one_long = CostOfJob(plan, device, samples).passes_s;
  CHECK(one_long > 1.2 * all_short);
  // Another replica has time for a long one meanwhile.
  samples[0].front().tokens = 96;
  CHECK(CostOfJob(plan, device, samples).passes_s == Approx(one_long));
  // In another microbatch of the same replica it takes that much again.
  samples[12].front().tokens = 96;
  CHECK(CostOfJob(plan, device, samples).passes_s - one_long == Approx(one_long - all_short));
}

TEST_CASE("images and labels are those of the samples", "[plan]") {
  const JobPlan plan(WithSettings("shapes"));
  PlacedSamples samples = FullBatch(plan.config());
  // No image in the first quarter, which is the first of the encoder's four replicas in each microbatch.
  for (std::size_t place : {0U, 1U}) samples[place].front().lengths.at("vision") = 0;
  samples[2].front().labels = 5;
  CHECK(WorkOfUnit(plan, samples, 0, 0, 0).front().lengths.at("vision") == 0);
  CHECK(WorkOfUnit(plan, samples, 0, 1, 0).front().lengths.at("vision") == 2);
  CHECK(WorkOfUnit(plan, samples, 1, 0, 0).front().lengths.at("vision") == 6);
  CHECK(WorkOfUnit(plan, samples, 1, 0, 0).front().labels == 5 + 7 * samples[0].front().tokens);
  const auto filled = FilledParts(plan, samples);
  CHECK(filled.at(0) == Approx(30.0 / 32.0));
  CHECK(filled.at(1) == 1.0);
}

TEST_CASE("work that is not drawn yet is that of the average, or of the longest", "[plan]") {
  const Config config = WithSettings("shapes");
  const ModuleConfig& language = config.Sink();
  CHECK(AverageWork().Of(config, language, 3).tokens == 96);
  PlacedSamples step;
  for (std::int64_t i = 1; i <= 90; ++i) {
    step.push_back({{.samples = 1, .tokens = i, .labels = 2 * i, .lengths = {{"vision", i % 3}}}});
  }
  const AverageWork average({step});
  const StepShape one = average.Of(config, language, 1);
  CHECK(one.tokens == 46);
  CHECK(one.labels == 91);
  CHECK(one.lengths.at("vision") == 1);
  const StepShape many = average.Of(config, language, 8);
  CHECK(many.tokens == 81);  // 8 / 9 of the way
  CHECK(many.samples == 8);
  const Config cut = WithSettings("shapes", {"modules.language.layout={cp=4}"});
  CHECK(average.Of(cut, cut.Sink(), 8).tokens == 45);
}

TEST_CASE("a stage has one price for any work", "[plan]") {
  const std::string file = GENERATE("shapes", "shapes_inline", "shapes_experts");
  const std::string layout = GENERATE("{}", "{tp=2}", "{cp=2}");
  Config config = WithSettings(file);
  for (ModuleConfig& module : config.modules) {
    if (module.name != config.Sink().name) continue;
    module.layout.pp = 1;
    module.layout.tp = layout == "{tp=2}" ? 2 : 1;
    module.layout.cp = layout == "{cp=2}" ? 2 : 1;
    module.recompute = {LayerPart::kAttention};
  }
  const DeviceModel device = ReadDevice("l40s-48g", config.run);
  const StagePrice price(config, device, "language", 0);
  const StepShape first{.samples = 3, .tokens = 41, .labels = 77, .lengths = {{"vision", 2}}};
  const StepShape second{.samples = 1, .tokens = 96, .labels = 5, .lengths = {{"vision", 7}}};
  const auto is_sum = [](const Breakdown& sum, const std::vector<Breakdown>& parts) {
    double total = 0.0;
    for (const Breakdown& part : parts) total += part.total();
    return sum.total() == Approx(total).epsilon(1e-9);
  };
  INFO(file << " " << layout);
  for (const StepShape& shape : {first, second}) {
    const PassCost one = price.Of({shape});
    const PassCost all = CostOfStage(config, device, "language", 0, shape);
    CHECK(is_sum(one.forward, {all.forward}));
    CHECK(is_sum(one.inputs, {all.inputs}));
    CHECK(is_sum(one.weights, {all.weights}));
    CHECK(one.hidden_s == Approx(all.hidden_s).epsilon(1e-9));
  }
  // What starts once for both is counted once.
  Breakdown none = price.Of({}).forward;
  CHECK(none.total() > 0.0);
  none *= -1.0;
  CHECK(is_sum(price.Of({first, second}).forward,
               {price.Of({first}).forward, price.Of({second}).forward, none}));
}

TEST_CASE("samples that a file states are those of the steps", "[plan]") {
  const Config config = WithSettings("shapes");
  const std::string path = std::filesystem::temp_directory_path() / "troupe_samples_test.csv";
  std::ofstream(path) << "tokens, labels, vision\n40,7,1\r\n500,300,0\n\n64,60,2\n";
  const auto samples = ReadSampleList(path, config);
  REQUIRE(samples.size() == 3);
  CHECK(samples[0].tokens == 40);
  CHECK(samples[0].labels == 7);
  CHECK(samples[0].lengths.at("vision") == 1);
  CHECK(samples[1].tokens == 96);  // the context
  CHECK(samples[1].labels == 96);
  CHECK(samples[1].lengths.at("vision") == 0);
  CHECK(samples[2].labels == 60);
  CHECK(samples[2].lengths.at("vision") == 2);
  const auto steps = StepsOfList(samples, config, 2);
  REQUIRE(steps.size() == 2);
  REQUIRE(steps[0].size() == 32);
  // The list has fewer samples than two steps: each is there equally often, but not at each third place.
  std::map<std::int64_t, int> times;  // by tokens
  std::set<std::int64_t> at_thirds;
  for (const PlacedSamples& step : steps) {
    for (std::size_t place = 0; place < step.size(); ++place) {
      ++times[step[place].front().tokens];
      if (place % 3 == 0) at_thirds.insert(step[place].front().tokens);
    }
  }
  CHECK(times == std::map<std::int64_t, int>{{40, 22}, {64, 21}, {96, 21}});
  CHECK(at_thirds.size() == 3);

  std::ofstream(path) << "\xEF\xBB\xBFtokens\n16\n";  // after a byte order mark
  CHECK(ReadSampleList(path, config).front().labels == 16);
  CHECK(ReadSampleList(path, config).front().lengths.at("vision") == 1);
  const auto fault_of = [&](const std::string& text) {
    std::ofstream(path) << text;
    try {
      ReadSampleList(path, config);
    } catch (const std::runtime_error& error) {
      return std::string(error.what()).substr(path.size());
    }
    return std::string("none");
  };
  CHECK(fault_of("") ==
        ": expected a first line that names columns, such as \"tokens,labels\", got an empty file");
  CHECK(fault_of("\n") == ":1: expected columns of tokens, labels, vision, got \"\"");
  CHECK(fault_of("labels\n3\n") == ":1: expected a column tokens, got labels");
  CHECK(fault_of("tokens,tokens\n3,3\n") == ":1: expected each column once, got \"tokens\" twice");
  CHECK(fault_of("tokens,language\n3,1\n") ==
        ":1: expected columns of tokens, labels, vision, got \"language\"");
  CHECK(fault_of("tokens\n3,1\n") == ":2: expected 1 number (tokens), got 2");
  CHECK(fault_of("tokens,vision\n30,1\n30\n") == ":3: expected 2 numbers (tokens, vision), got 1");
  for (const char* cell : {"-4", "1.5", "", "3 4", "x", "99999999999999999999"}) {
    CHECK(fault_of("tokens,labels\n16,3\n16," + std::string(cell) + "\n") ==
          ":3: labels: expected a whole number, 0 or more, got \"" + std::string(cell) + "\"");
  }
  CHECK(fault_of("tokens,labels\n40,50\n") ==
        ":2: labels: expected at most the 40 tokens of the sample, got 50");
  CHECK(fault_of("tokens\n") == ": expected a line for each sample after the first, got none");
  // An image has 16 rows here, and a context 96 tokens.
  CHECK(fault_of("tokens,vision\n32,2\n31,2\n") ==
        ":3: tokens: expected at least 32, for 2 items of vision with 16 rows each, got 31");
  CHECK(fault_of("tokens\n15\n") ==
        ":2: tokens: expected at least 16, for 1 item of vision with 16 rows, got 15");
  CHECK(fault_of("tokens,vision\n500,7\n") ==
        ":2: tokens: expected at least 112, for 7 items of vision with 16 rows each, got 96, the "
        "context");
  CHECK(fault_of("tokens,vision\n96,9000000000000000000\n").starts_with(":2: tokens: "));
  std::filesystem::remove(path);
}

}  // namespace troupe
