#include "plan/flat_layout.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "kinds/work.hpp"

namespace troupe {
namespace {

/// Where replicas divide a bucket, their parts are multiples of this many elements, so that they
/// begin on cache lines in bfloat16, too.
constexpr std::int64_t kAligned = 32;

BucketKey KeyOf(const ParameterSpec& spec, bool part_has_layers) {
  BucketKey key{.unrounded = spec.unrounded, .summed = !spec.unrounded && spec.cut == Cut::kSummed};
  if (key.unrounded || key.summed) return key;
  key.part = spec.part;
  key.expert = spec.expert.has_value();
  key.tied = spec.tied;
  if (spec.tied) return key;
  if (spec.layer) {
    key.place = BucketPlace::kInLayer;
    key.layer = *spec.layer;
  } else if (part_has_layers) {
    key.place = BucketPlace::kAfterLayers;
  }
  return key;
}

}  // namespace

FlatLayout::FlatLayout(const std::vector<ParameterSpec>& specs, const ShardAddress& shard,
                       const Layout& layout, const StateShardings& shardings) {
  const Coordinates at{.tp = shard.tp, .cp = shard.cp, .dp = shard.dp, .pp = shard.pp};
  others_ = {shardings.others, layout.HolderAt(at)};
  experts_ = {shardings.experts, layout.ExpertsAt(at).dp};
  for (const ParameterSpec& spec : specs) {
    const auto slice = SliceOf(spec, layout, at);
    if (!slice) continue;
    FlatParameter parameter{.spec = spec, .slice = *slice};
    parameter.size = NumElements(parameter.slice.shape);
    if (spec.frozen) parameter.offset = std::exchange(num_frozen_, num_frozen_ + parameter.size);
    parameters_.push_back(std::move(parameter));
  }
  AddBuckets();
  PlaceParameters();
}

void FlatLayout::AddBuckets() {
  std::vector<BucketKey> keys;  // by parameter
  std::set<std::string> with_layers;
  for (const FlatParameter& parameter : parameters_) {
    const ParameterSpec& spec = parameter.spec;
    if (spec.layer) with_layers.insert(spec.part);
    keys.push_back(KeyOf(spec, with_layers.contains(spec.part)));
    const bool is_new =
        std::ranges::find(buckets_, keys.back(), &FlatBucket::key) == buckets_.end();
    if (!spec.frozen && is_new) buckets_.push_back({.key = keys.back(), .all = {}, .own = {}});
  }
  std::stable_partition(buckets_.begin(), buckets_.end(),
                        [](const FlatBucket& bucket) { return !bucket.key.unrounded; });
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto found = std::ranges::find(buckets_, keys[i], &FlatBucket::key);
    parameters_[i].bucket = static_cast<std::size_t>(found - buckets_.begin());
  }
}

void FlatLayout::PlaceParameters() {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    FlatBucket& bucket = buckets_[b];
    const Holders& holders = HoldersOf(bucket.key.expert);
    const std::int64_t shards = holders.sharding.shards;
    const int index = holders.sharding.IndexOf(holders.holder);
    std::int64_t end = num_trained_;
    for (FlatParameter& parameter : parameters_) {
      if (parameter.spec.frozen || parameter.bucket != b) continue;
      parameter.offset = std::exchange(end, end + parameter.size);
    }
    const std::int64_t multiple = shards == 1 ? 1 : shards * kAligned;
    const std::int64_t padded = CeilDivide(end - num_trained_, multiple) * multiple;
    bucket.all = {num_trained_, num_trained_ + padded};
    bucket.own = {num_trained_ + padded / shards * index,
                  num_trained_ + padded / shards * (index + 1)};
    bucket.own_offset = num_own_;
    num_trained_ = bucket.all.end;
    num_own_ += bucket.own.size();
    if (bucket.key.unrounded) {
      num_unrounded_ += bucket.all.size();
      num_own_unrounded_ += bucket.own.size();
    }
  }
}

bool FlatLayout::ReportsFrozen(const FlatParameter& parameter) const {
  return parameter.slice.owner && !parameter.spec.tied_copy &&
         HoldersOf(parameter.spec.expert.has_value()).holder == 0;
}

bool FlatLayout::ReportsOwn(const FlatParameter& parameter) const {
  const Holders& holders = HoldersOf(parameter.spec.expert.has_value());
  return parameter.slice.owner && !parameter.spec.tied_copy &&
         holders.sharding.InstanceOf(holders.holder) == 0;
}

}  // namespace troupe
