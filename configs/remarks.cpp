#include "configs/remarks.hpp"

namespace troupe {

std::vector<ConfigError> Remarks(const Config& config, const Origins& origins) {
  std::vector<ConfigError> remarks;
  const auto add = [&](const std::string& key, const std::string& text) {
    const auto origin = origins.find(key);
    const Place place = origin == origins.end() ? Place{} : origin->second.place;
    remarks.push_back({place.file, place.line, place.column, key + ": " + text});
  };
  if (config.run.tf32 && config.cluster.backend != "cuda") {
    add("run.tf32", "has no effect with cluster.backend = \"" + config.cluster.backend +
                        "\": it is about products of float32 on a GPU");
  } else if (config.run.tf32 && config.run.precision != Precision::kFloat32) {
    const bool is_short = config.run.precision == Precision::kBFloat16;
    add("run.tf32", std::string("has no effect with run.precision = ") +
                        (is_short ? "\"bfloat16\"" : "\"float64\"") +
                        ": it is about products of float32");
  }
  return remarks;
}

}  // namespace troupe
