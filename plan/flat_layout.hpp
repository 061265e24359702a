// How the parameters of a shard lie in flat tensors, and which part of them each replica updates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kinds/parameter.hpp"
#include "layout/grid.hpp"
#include "layout/ids.hpp"
#include "layout/route.hpp"
#include "plan/optimizer_settings.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {

struct FlatParameter {
  ParameterSpec spec;
  ParameterSlice slice;
  std::int64_t size = 0;    ///< elements of the slice
  std::int64_t offset = 0;  ///< in the flat tensor of frozen parameters, or in that of trained ones
  std::size_t bucket = 0;   ///< of a trained parameter

  Interval interval() const { return {offset, offset + size}; }
};

/// Where the parameters of a bucket are used.
enum class BucketPlace : std::uint8_t { kOutsideLayers, kInLayer, kAfterLayers };

/// The parameters that a bucket has: those of a layer, or of a part outside its layers. One bucket
/// has the unrounded ones of all parts, another those whose gradients ranks along tp add up.
struct BucketKey {
  std::string part = {};  ///< ParameterSpec::part; empty: of all parts
  BucketPlace place = BucketPlace::kOutsideLayers;
  std::int64_t layer = 0;  ///< with kInLayer
  bool unrounded = false;  ///< as ParameterSpec::unrounded
  bool summed = false;     ///< of Cut::kSummed: complete only when ranks along tp have met
  bool tied = false;       ///< alone, so that first and last stage cut it in the same way
  bool expert = false;     ///< of experts, which other ranks hold
  friend bool operator==(const BucketKey&, const BucketKey&) = default;
};

/// Trained parameters that are neighbours in the flat tensor and whose gradients are reduced by one
/// collective.
struct FlatBucket {
  BucketKey key;
  Interval all;                 ///< in the flat tensor, with padding at its end
  Interval own;                 ///< the part whose moments this replica holds, which it updates
  std::int64_t own_offset = 0;  ///< of `own` in a tensor that has only the own parts of all buckets
};

/// The flat tensor of trained parameters is a sequence of buckets. The replicas of one optimizer
/// instance cut every bucket into equal parts, so each sends and receives as much as the others. The
/// buckets of unrounded parameters are at the end.
class FlatLayout {
 public:
  FlatLayout(const std::vector<ParameterSpec>& specs, const ShardAddress& shard,
             const Layout& layout, const StateShardings& shardings);

  /// In the order of `specs`, without experts that are elsewhere.
  const std::vector<FlatParameter>& parameters() const { return parameters_; }
  const std::vector<FlatBucket>& buckets() const { return buckets_; }
  const StateSharding& ShardingOf(const FlatBucket& bucket) const {
    return HoldersOf(bucket.key.expert).sharding;
  }

  std::int64_t num_frozen() const { return num_frozen_; }
  std::int64_t num_trained() const { return num_trained_; }  ///< padding included
  std::int64_t num_own() const { return num_own_; }          ///< of them, in own parts
  std::int64_t num_unrounded() const { return num_unrounded_; }
  std::int64_t num_own_unrounded() const { return num_own_unrounded_; }

  /// The elements of a trained parameter that this replica updates, in the flat tensor.
  Interval OwnOf(const FlatParameter& parameter) const {
    return Intersect(parameter.interval(), buckets_[parameter.bucket].own);
  }
  /// Whether this shard reports what it has of a parameter, of which others may have copies: of a
  /// frozen one all replicas, of the part that this replica updates one replica of every instance.
  bool ReportsFrozen(const FlatParameter& parameter) const;
  bool ReportsOwn(const FlatParameter& parameter) const;

 private:
  /// The place of this shard among the holders of the same parameters.
  struct Holders {
    StateSharding sharding;
    int holder = 0;
  };

  const Holders& HoldersOf(bool expert) const { return expert ? experts_ : others_; }
  void AddBuckets();
  void PlaceParameters();

  Holders others_;
  Holders experts_;
  std::vector<FlatParameter> parameters_;
  std::vector<FlatBucket> buckets_;
  std::int64_t num_frozen_ = 0;
  std::int64_t num_trained_ = 0;
  std::int64_t num_own_ = 0;
  std::int64_t num_unrounded_ = 0;
  std::int64_t num_own_unrounded_ = 0;
};

}  // namespace troupe
