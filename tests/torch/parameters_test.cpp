// The parameters of all shards together: what they begin with, and which shard owns them.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "modules/initial_values.hpp"
#include "tests/torch/job.hpp"

namespace troupe {

TEST_CASE("each value of a large parameter follows from its place, in any shard", "[torch]") {
  Config config = SmallConfig();
  auto& llama = ModuleOf(config, "language").As<LlamaConfig>();
  llama.vocab = 300'000;  // times 8 or more: several threads, where there are cores
  Job job(config);
  const std::string name = "language.embed_tokens.weight";
  const auto all = job.Tensors(TensorKind::kParameter);
  const std::vector<double>& values = all.at(name);
  REQUIRE(values.size() > std::size_t{1} << 21);
  const std::uint64_t key = ParameterKey(config.run.seed, name);
  const double std = 1.0 / std::sqrt(static_cast<double>(llama.hidden));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    wrong += std::abs(values[i] - std * static_cast<double>(NormalAt(key, i))) > 1e-12 ? 1 : 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("every element of every parameter has exactly one owner", "[torch]") {
  Config config = SmallConfig();
  ModuleOf(config, "language").As<LlamaConfig>().tied_head = true;
  SetLayout(config, "vision", {.tp = 2, .pp = 2, .dp = 2});
  SetLayout(config, "language", {.tp = 4, .pp = 2, .dp = 2});
  Job job(config);
  for (const auto& [name, values] : job.Tensors(TensorKind::kParameter)) {
    INFO(name);
    CHECK(job.OwnedElements().at(name) == static_cast<std::int64_t>(values.size()));
  }
}

}  // namespace troupe
