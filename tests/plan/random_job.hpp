// Random sizes for the example jobs, to test plans that no person has chosen.
#pragma once

#include <initializer_list>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A job of shapes.toml with other sizes, so that layouts divide it in other ways.
inline std::vector<std::string> RandomSizes(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<int> values) {
    return std::to_string(std::data(values)[random() % values.size()]);
  };
  const std::string heads = pick({2, 4, 6, 8});
  return {"modules.vision.hidden=" + std::to_string(std::stoi(heads) * 16),
          "modules.vision.heads=" + heads,
          "modules.vision.layers=" + pick({2, 3, 4, 7}),
          "modules.language.layers=" + pick({2, 4, 5, 8, 12}),
          "modules.language.heads=8",
          "modules.language.kv_heads=" + pick({1, 2, 4, 8}),
          "modules.language.hidden=64",
          "modules.language.context=" + pick({96, 512, 1024}),
          "modules.vision.frozen=" + std::string(random() % 3 == 0 ? "true" : "false"),
          "run.precision=" + std::string(random() % 2 == 0 ? "\"bfloat16\"" : "\"float32\""),
          "schedule.microbatches=" + pick({1, 4, 6, 8}),
          "schedule.micro_batch_size=" + pick({1, 2, 3}),
          "optimizer.shard=" + std::string(random() % 2 == 0 ? "\"data\"" : "\"none\""),
          "modules.language.axis_order=" + std::string(random() % 2 == 0
                                                           ? R"(["dp", "tp", "cp", "pp"])"
                                                           : R"(["tp", "cp", "dp", "pp"])")};
}

/// Returns a configuration and what is set over it: of every three draws one has two encoders.
inline std::pair<std::string, std::vector<std::string>> RandomJob(std::mt19937& random, int draw) {
  const std::string path = draw % 3 == 0   ? "configs/shapes_two_encoders.toml"
                           : draw % 3 == 1 ? "configs/shapes.toml"
                                           : "configs/shapes_colocated.toml";
  std::vector<std::string> overrides = RandomSizes(random);
  if (draw % 3 == 0) overrides.erase(overrides.begin(), overrides.begin() + 3);
  return {path, overrides};
}

}  // namespace troupe
