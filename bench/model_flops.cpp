// Prints the operations of a step of a configuration as JSON: `bench_model_flops CONFIG
// [KEY=VALUE...]`. The samples of the first step determine the tokens, labels and items.
#include "plan/model_flops.hpp"

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/program.hpp"
#include "configs/loader.hpp"
#include "data/row_source.hpp"

namespace troupe::bench {
namespace {

StepShape ShapeOf(const Config& config) {
  RowSource source(config);
  const Inputs whole =
      source.LoadWhole({.train = true, .microbatches = config.schedule.microbatches});
  const Shape& tokens = whole.tokens.shape();
  StepShape shape{.samples = tokens.at(0), .tokens = tokens.at(1)};
  for (std::int64_t i = 0; i < NumElements(tokens); ++i) {
    shape.labels += whole.labels.as<std::int64_t>()[i] != kNoLabel;
  }
  for (const auto& [module, items] : whole.fields) {
    shape.lengths[module] = items.values.shape().at(0);
  }
  return shape;
}

int Print(const std::string& path, const std::vector<std::string>& overrides) {
  const Config config = LoadConfig(path, overrides).config;
  const StepShape shape = ShapeOf(config);
  nlohmann::ordered_json out;
  out["samples"] = shape.samples;
  out["tokens"] = shape.samples * shape.tokens;
  out["labels"] = shape.labels;
  out["images"] = shape.lengths;
  const auto parts = StepFlops(config, shape);
  for (const PartFlops& part : parts) {
    out["parts"][part.name] = {{"forward", part.flops.forward}, {"backward", part.flops.backward}};
  }
  out["flops"] = TotalFlops(parts);
  std::cout << out.dump(1) << '\n';
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_model_flops CONFIG [KEY=VALUE...]\n");
    return 2;
  }
  return troupe::bench::ExitCodeOf("bench_model_flops", [=] {
    return troupe::bench::Print(argv[1], {argv + 2, argv + argc});
  });
}
