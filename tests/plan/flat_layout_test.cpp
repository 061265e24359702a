#include "plan/flat_layout.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "kinds/llama.hpp"
#include "plan/optimizer_settings.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

FlatLayout LayoutOf(const Config& config, const std::string& module, int pp, int dp,
                    const StateSharding& sharding) {
  const ModuleConfig& own = FindModule(config, module);
  return {StageParameters(config, module, pp),
          {.module = module, .pp = pp, .dp = dp},
          own.layout,
          {sharding, {}}};
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

TEST_CASE("a rank has its experts, and their own holders divide them") {
  Config config = SmallModulesConfig();
  ModuleConfig& language = config.modules[2];
  language.layout = {.tp = 2, .dp = 4, .ep = 2, .etp = 2};
  language.As<LlamaConfig>().experts = {.count = 6, .per_token = 2, .hidden = 10};
  config.optimizer.shard = OptimizerShard::kData;
  const auto specs = StageParameters(config, "language", 0);
  const StateShardings shardings = ShardingsOf(config, language);
  CHECK(shardings.others.shards == 4);
  CHECK(shardings.experts.shards == 2);
  std::map<std::string, std::set<std::int64_t>> reported;  // elements, by parameter
  for (int dp = 0; dp < 4; ++dp) {
    for (int tp = 0; tp < 2; ++tp) {
      const FlatLayout flat(specs, {.module = "language", .dp = dp, .tp = tp}, language.layout,
                            shardings);
      for (const FlatParameter& parameter : flat.parameters()) {
        const bool expert = parameter.spec.expert.has_value();
        const FlatBucket& bucket = flat.buckets()[parameter.bucket];
        CHECK(bucket.key.expert == expert);
        if (!expert) continue;
        // Stage rank 2 dp + tp: etp varies fastest, then ep.
        CHECK(parameter.spec.expert->number / 3 == dp % 2);
        CHECK(bucket.all.size() == 2 * bucket.own.size());
        const bool rows = parameter.spec.cut == Cut::kRows;
        CHECK(parameter.slice.shape[rows ? 0 : 1] == 5);
        CHECK(parameter.slice.offsets[rows ? 0 : 1] == 5 * tp);
        if (!flat.ReportsOwn(parameter)) continue;
        const Interval own = flat.OwnOf(parameter);
        for (std::int64_t i = own.begin; i < own.end; ++i) {
          CHECK(reported[parameter.spec.name].insert(1000 * tp + i - parameter.offset).second);
        }
      }
    }
  }
  std::int64_t experts = 0;
  for (const ParameterSpec& spec : specs) {
    if (!spec.expert) continue;
    ++experts;
    CHECK(std::ssize(reported[spec.name]) == spec.num_elements());
  }
  CHECK(experts == 18 * language.As<LlamaConfig>().layers);
}

}  // namespace troupe
