// The parameters of one shard with their gradients and optimizer state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <torch/types.h>
#include <unordered_map>
#include <utility>
#include <vector>

#include "modules/groups.hpp"
#include "modules/stage_program.hpp"
#include "modules/torch/bucket_exchange.hpp"
#include "modules/torch/numerics.hpp"
#include "plan/flat_layout.hpp"

namespace troupe {

struct AdamWStep;
class CopyLane;
struct LaneCopy;

/// The use of a flat tensor, in the order in which it must be back.
enum class StateUse {
  kForward,   ///< parameters: every pass reads them, the update writes them
  kBackward,  ///< gradients: backwards and the update write them
  kUpdate,    ///< moments, and all else that the update alone reads and writes
};

struct FlatState {
  at::Tensor tensor;  ///< one dimension, alone in its storage
  StateUse use = StateUse::kForward;
};

/// Flat tensors of the trainable parameters: values and gradients of all of them, and two moments of
/// those that this replica updates, in the type of the state. If products use a shorter type, all
/// values but those of unrounded parameters are kept in that type, and in the type of the state only
/// where this replica updates them. One more tensor holds the frozen parameters, in the type of
/// products only. Parameters are views of them: one collective reduces the gradients of a bucket, and
/// contiguous parameters can be multiplied by as one matrix.
class ParameterStore {
 public:
  /// The initial values of a parameter follow from (seed, name), in every layout and on every
  /// device. Those of a folder are not set. Groups may be null: of one member. Takes all but
  /// `groups.tensor`.
  ParameterStore(FlatLayout layout, std::uint64_t seed, const Numerics& numerics,
                 ShardGroups groups = {});
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  /// A leaf over the rows of the named parameters, stacked: [sum of rows, elements of one row], or
  /// one dimension when they have one. They must be neighbours in the order given to the
  /// constructor. It is in the type of products, of an unrounded parameter that trains in that of the
  /// state. It requires grad when they train, and its .grad is preset, so that every use adds to it:
  /// by hand where the leaf is of a shorter type than the gradients.
  at::Tensor Leaf(const std::vector<std::string>& names) const;
  bool Has(const std::string& name) const { return numbers_.contains(name); }
  at::Tensor Leaf(const std::string& name) const { return Leaf(std::vector{name}); }
  /// Where this shard's part of a parameter begins in the whole, along dimension 0.
  std::int64_t FirstRow(const std::string& name) const { return Find(name).slice.offsets.at(0); }
  /// The same along dimension 1.
  std::int64_t FirstColumn(const std::string& name) const { return Find(name).slice.offsets.at(1); }

  /// The exchange with other replicas, which passes tell where they are.
  BucketExchange& exchange() const { return *exchange_; }

  /// Sums the gradients over the shard's groups, in place; see StageProgram::ReduceGradients.
  ReducedGradients ReduceGradients();
  /// One AdamW step of everything that trains, then clears the gradients. The values that other
  /// replicas update arrive later; see exchange().
  void Update(const Config& config, const UpdateStep& step);
  /// On the host: views of the live tensors, to be read before the next pass writes. On a device:
  /// copies in host memory, for which this waits. Where replicas divide the state, the pieces that
  /// this one updates, and after ReduceGradients the same of gradients.
  std::vector<TensorPiece> Pieces(TensorKind kind) const;
  /// See StageProgram::SetTensors; `who` begins the texts of errors. Where replicas divide the
  /// state, parameters arrive from the others, which must set theirs, too.
  void SetPieces(const std::string& who, TensorKind kind, const std::vector<TensorPiece>& pieces);
  /// Copies are made of what another shard stores, which holds the same state and has that layout.
  void CopyFor(FlatLayout first) {
    first_ = std::move(first);
    copied_.reset();
    copies_.clear();  // they have no memory for it
  }
  /// See StageProgram::PrepareCopies.
  void PrepareCopies(CopyLane& lane);
  /// Begins to copy by `lane` what CopiedPieces lists; see StageProgram::CopyState. Frozen values are
  /// copied once, if they leave the host memory that they are in.
  void CopyStored(CopyLane& lane, bool leaves, StateMovedCallback done);
  /// See StageProgram::CopiedTensors.
  std::vector<TensorPiece> CopiedPieces(TensorKind kind) const;
  /// All flat tensors, each in separate memory.
  std::vector<FlatState> Flats() const;
  std::size_t num_bytes() const;
  const Numerics& numerics() const { return numerics_; }

 private:
  /// The flat tensors that the pieces of a kind are cut from.
  struct Sources {
    at::Tensor whole;  ///< values that are read in the type of the state, or gradients
    at::Tensor own;    ///< own parts
    at::Tensor frozen;
  };
  /// The elements of a parameter that are kept here.
  struct Held {
    at::Tensor elements;  ///< flat
    Interval interval;    ///< of them, in this shard's slice of the parameter
  };

  void Initialise(std::uint64_t seed);
  void MakeExchange();
  const FlatParameter& Find(const std::string& name) const;
  const FlatBucket& BucketOf(const FlatParameter& parameter) const {
    return layout_.buckets()[parameter.bucket];
  }
  /// Whether passes read values that are rounded from masters.
  bool IsRounded(const FlatBucket& bucket) const {
    return numerics_.mixed() && !bucket.key.unrounded;
  }
  /// Elements of a bucket's values as passes read them, by their places in the flat tensor.
  at::Tensor ReadPart(const FlatBucket& bucket, const Interval& interval) const;
  /// Elements of the bucket's own part in a tensor of own parts, likewise.
  static at::Tensor OwnPart(const at::Tensor& flat, const FlatBucket& bucket,
                            const Interval& interval);
  void SumOverHolders();
  void UpdateBucket(std::size_t index, const Config& config, const UpdateStep& update);
  void UpdateRun(const AdamWStep& step, const FlatBucket& bucket, const Interval& run);
  Sources LiveSources(TensorKind kind) const;
  /// The same in host memory: where they are there, the live ones.
  Sources HostSources(TensorKind kind) const;
  /// What a copy of this shard's pieces holds.
  using Copies = std::map<TensorKind, Sources>;
  /// Memory for a copy of a kind.
  Sources AllocateCopy(TensorKind kind, CopyLane& lane) const;
  /// Makes `copied_` memory that nothing refers to, with that of all kinds.
  void TakeFreeCopies(CopyLane& lane);
  /// From the live elements to those of their copies, which have memory.
  std::vector<LaneCopy> CopiesOf(TensorKind kind) const;
  Held HeldOf(const FlatParameter& parameter, TensorKind kind, const Sources& from) const;
  /// Whether the shard with that layout reports what it holds of a parameter.
  static bool Reports(const FlatLayout& layout, const FlatParameter& parameter) {
    return parameter.spec.frozen ? layout.ReportsFrozen(parameter) : layout.ReportsOwn(parameter);
  }
  /// The parameters that copies have something of, frozen or trained.
  std::vector<const FlatParameter*> Copied(bool frozen) const;
  /// All pieces, or only those that copies have: only these are looked up in `from`. They keep `owner`
  /// alive, if there is one.
  std::vector<TensorPiece> PiecesOf(TensorKind kind, const Sources& from, bool copied_only,
                                    const std::shared_ptr<Copies>& owner = nullptr) const;
  const FlatLayout& stored_layout() const { return first_ ? *first_ : layout_; }

  Numerics numerics_;
  FlatLayout layout_;
  std::optional<FlatLayout> first_;  ///< of the shard for which this one makes copies
  std::unordered_map<std::string, std::size_t> numbers_;  ///< of parameters, by name
  ShardGroups groups_;
  at::Tensor frozen_;
  at::Tensor values_;   ///< of all that are read in the type of the state
  at::Tensor rounded_;  ///< of the others, in the type of products; undefined if there is one type
  at::Tensor masters_;  ///< of the others' own parts; undefined likewise
  at::Tensor gradients_;
  at::Tensor first_moments_;
  at::Tensor second_moments_;
  std::shared_ptr<Copies> copied_;  ///< the last one; null: there is none
  at::Tensor copied_frozen_;        ///< shared by all copies; live where they have nothing of it
  /// All copies. One that pieces refer to keeps its values.
  std::vector<std::shared_ptr<Copies>> copies_;
  std::unique_ptr<BucketExchange> exchange_;  ///< destroyed first: it uses the others
};

}  // namespace troupe
