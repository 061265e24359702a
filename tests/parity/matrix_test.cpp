#include "tests/parity/matrix.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "configs/checks.hpp"
#include "tests/parity/features.hpp"
#include "tests/parity/proof.hpp"

namespace troupe {
namespace {

std::set<std::string> Sizes(const std::string& role) {
  std::set<std::string> sizes;
  for (const char* axis : {"tp", "cp", "pp", "dp"}) {
    for (int size = 1; size <= 4; ++size) {
      if (role == "encoder" && std::string(axis) == "pp" && size == 4) continue;
      sizes.insert(role + " " + axis + " " + std::to_string(size));
    }
  }
  return sizes;
}

/// What the matrix must have, besides every size of every axis.
// clang-format off
const std::set<std::string> kPromises = {
    "disjoint", "colocated", "inline", "mixed placements", "two encoders", "no encoder",
    "frozen vision", "frozen language", "frozen projector", "only the projector trains",
    "projector at to", "no projector", "class token", "tied head", "tied head over stages",
    "tp above kv_heads", "language stated layers", "encoder stated layers", "axis order",
    "ranks not contiguous", "credits 1", "clipping", "no clipping", "window 1", "window 2",
    "window 3", "window step", "uneven window", "colocated with language pp 1",
    "colocated with language pp 2", "fan 3 to 2", "fan 2 to 3", "fan 4 to 1", "fan 1 to 4",
    "fan 4 to 3", "fan 2 to 4", "fan 4 to 2", "more encoder replicas than samples",
    "rows differ between samples", "replica without images",
    "recomputed attention", "recomputed mlp.up", "recomputed mlp", "recomputed full", "activations away", "activations of layers away", "recipe", "adapters of encoder with dropout",
    "adapters of language with dropout", "adapters of language", "tiles disjoint", "tiles colocated", "tiles inline",
    "sharded states", "sharded states of instances", "sharded states offloaded", "sequence parallel", "tp without sp", "ring of keys", "gathered keys", "cp at both ends", "other cp at the other end", "colocated with cp", "inline with cp", "packs", "several samples in a pack", "ep 1", "ep 2", "ep 4", "etp 1", "etp 2", "experts with tp 2", "balanced by sample", "balanced by microbatch", "softmax before the choice", "softmax after the choice", "shared expert", "layers with and without experts", "replicas in lock step", "sharded states of experts", "1f1b", "gpipe", "zb-h1", "interleaved", "csv"};
// clang-format on

std::set<std::string> Promises() {
  std::set<std::string> promises = kPromises;
  for (const char* role : {"encoder", "language"}) promises.merge(Sizes(role));
  return promises;
}

std::set<std::string> Missing(const std::set<std::string>& expected,
                              const std::set<std::string>& found) {
  std::set<std::string> missing;
  std::ranges::set_difference(expected, found, std::inserter(missing, missing.end()));
  return missing;
}

}  // namespace

TEST_CASE("the matrix is large, and every configuration of it is one a user could write",
          "[parity]") {
  const auto matrix = Matrix();
  CHECK(matrix.size() >= 64);
  std::set<std::string> names;
  for (const Setup& setup : matrix) {
    INFO(setup.name());
    CHECK(names.insert(setup.name()).second);
    CHECK(setup.config().cluster.ranks <= 8);
    Report report(setup.name());
    CheckConfig(setup.config(), report);
    for (const ConfigError& error : report.errors()) FAIL_CHECK(ToString(error));
  }
  const auto singles = std::ranges::count_if(matrix, &Setup::float32);
  CHECK(3 * singles >= std::ssize(matrix));
}

TEST_CASE("the matrix has every promised feature, and its quick third has them all", "[parity]") {
  std::set<std::string> all;
  std::set<std::string> quick;
  for (const Setup& setup : Matrix()) {
    const auto features = FeaturesOf(setup.config(), kProofSteps);
    all.insert(features.begin(), features.end());
    if (setup.quick()) quick.insert(features.begin(), features.end());
  }
  CHECK(Missing(Promises(), all) == std::set<std::string>());
  CHECK(Missing(Promises(), quick) == std::set<std::string>());
}

}  // namespace troupe
