#include "plan/flat_layout.hpp"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

FlatLayout LayoutOf(const Config& config, const std::string& module, int pp, int dp,
                    const StateSharding& sharding) {
  const ModuleConfig& own = FindModule(config, module);
  return {StageParameters(config, module, pp),
          {.module = module, .pp = pp, .dp = dp},
          own.layout,
          sharding};
}

}  // namespace

TEST_CASE("trained parameters lie in buckets without gaps, and own parts cut each evenly") {
  const Config config = SmallModulesConfig();
  for (const std::string module : {"vision", "language"}) {
    for (const int shards : {1, 2, 3, 7}) {
      std::vector<std::vector<Interval>> own;  // by bucket
      for (int dp = 0; dp < shards; ++dp) {
        const FlatLayout flat = LayoutOf(config, module, 0, dp, {shards, 1});
        std::int64_t end = 0;
        std::int64_t own_end = 0;
        own.resize(flat.buckets().size());
        for (std::size_t b = 0; b < flat.buckets().size(); ++b) {
          const FlatBucket& bucket = flat.buckets()[b];
          CHECK(bucket.all.begin == end);
          CHECK(bucket.own_offset == own_end);
          CHECK(bucket.all.size() == bucket.own.size() * shards);
          end = bucket.all.end;
          own_end += bucket.own.size();
          own[b].push_back(bucket.own);
          std::int64_t filled = bucket.all.begin;
          for (const FlatParameter& parameter : flat.parameters()) {
            if (parameter.spec.frozen || parameter.bucket != b) continue;
            CHECK(parameter.offset == filled);
            filled += parameter.size;
          }
          CHECK(filled <= bucket.all.end);
          CHECK(bucket.all.end - filled < std::max(1, 32 * shards));
        }
        CHECK(flat.num_trained() == end);
        CHECK(flat.num_own() == own_end);
      }
      for (const std::vector<Interval>& parts : own) {
        for (std::size_t i = 1; i < parts.size(); ++i) CHECK(parts[i].begin == parts[i - 1].end);
      }
    }
  }
}

TEST_CASE("every layer is a bucket, and unrounded parameters are the last one") {
  const Config config = SmallModulesConfig();
  const FlatLayout flat = LayoutOf(config, "language", 0, 0, {2, 1});
  const std::vector<FlatBucket>& buckets = flat.buckets();
  CHECK(buckets.back().key.unrounded);
  CHECK(buckets.back().all.size() == flat.num_unrounded());
  CHECK(buckets.back().own.size() == flat.num_own_unrounded());
  std::set<std::int64_t> layers;
  bool after = false;
  for (const FlatBucket& bucket : buckets) {
    if (bucket.key.place == BucketPlace::kInLayer) CHECK(layers.insert(bucket.key.layer).second);
    after = after || bucket.key.place == BucketPlace::kAfterLayers;
  }
  CHECK(layers == std::set<std::int64_t>{0, 1, 2, 3});
  CHECK(after);
}

TEST_CASE("an element is reported by one replica, and by the same one of every instance") {
  const Config config = SmallModulesConfig();
  const StateSharding sharding{3, 2};
  std::map<std::string, std::int64_t> reported;
  std::map<std::string, std::int64_t> held;
  std::map<std::string, std::int64_t> sizes;
  for (int dp = 0; dp < 6; ++dp) {
    const FlatLayout flat = LayoutOf(config, "language", 0, dp, sharding);
    for (const FlatParameter& parameter : flat.parameters()) {
      const std::int64_t own = flat.OwnOf(parameter).size();
      held[parameter.spec.name] += own;
      if (flat.ReportsOwn(parameter)) reported[parameter.spec.name] += own;
      sizes[parameter.spec.name] = parameter.size;
    }
  }
  CHECK(reported == sizes);
  for (auto& [name, size] : sizes) size *= 2;
  CHECK(held == sizes);
}

}  // namespace troupe
