// The computation of one shard of a stage. The Device actor calls it on its own thread, in the
// order the Stage actor decided; nothing in here decides or waits for anything but its collectives.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "layout/ids.hpp"
#include "layout/row_table.hpp"
#include "modules/work_queue.hpp"
#include "trace/pass_record.hpp"
#include "transport/buffer.hpp"

namespace troupe {

struct Config;

/// The items of a field in a batch, contiguous along dimension 0 (kinds/field.hpp).
struct FieldItems {
  Buffer values;  ///< float32: squares of images [n, 3, S, S], sound [sum of lengths, bins]
  std::vector<std::int64_t> lengths;  ///< of each item along dimension 0
};

/// An item whose file could not be read. Its values are 0.
struct ReplacedItem {
  bool train = true;         ///< of data.train, else of data.held_out
  std::int32_t source = -1;  ///< place in data.sources, 0 in data.train; -1: data.held_out
  std::int64_t row = 0;      ///< place in the list
  std::string file;
  std::string line;  ///< where and why, for people
  friend auto operator<=>(const ReplacedItem& a, const ReplacedItem& b) {
    return std::tie(a.train, a.source, a.row, a.file) <=>
           std::tie(b.train, b.source, b.row, b.file);
  }
  friend bool operator==(const ReplacedItem& a, const ReplacedItem& b) { return a <=> b == 0; }
};

/// In place of a label: no loss there. As in transformers.
inline constexpr std::int64_t kNoLabel = -100;

/// The data of one unit of work for one data-parallel shard, as a Feed sends it. Only the fields
/// that the module reads are filled. B samples, T tokens (the longest of them; the rest is
/// padding).
struct Inputs {
  RowTable table;                            ///< the samples, and the rows each gives to the output
  std::int64_t num_tokens = 0;               ///< text and image tokens of the samples, no padding
  Buffer tokens;                             ///< [B, T] int64
  Buffer labels;                             ///< [B, T] int64: the next token, or kNoLabel
  Buffer content;                            ///< [B, T] uint8: the label is part of a content word
  std::map<std::string, FieldItems> fields;  ///< by module that reads a field
  /// By source module: [rows] int64, where its rows go: b * T + t; -1: left out.
  std::map<std::string, Buffer> positions;
  /// By source module whose images are cut into tiles: [n] int64, where the newline row goes.
  std::map<std::string, Buffer> newlines;
  std::map<std::string, RowTable> expected;  ///< by source module: the rows that must arrive
  std::vector<ReplacedItem> replaced;        ///< items of `fields`
  /// The ids of the samples, in row order, for errors; those that only fill a place have none. Empty:
  /// the samples have no names.
  std::vector<std::string> names;
};

/// Calls visit(buffer, what it holds) for every buffer of `inputs`, those without values included.
template <class AnyInputs, class Visit>
void ForEachBuffer(AnyInputs& inputs, Visit visit) {
  for (auto* buffer : {&inputs.tokens, &inputs.labels, &inputs.content}) visit(*buffer, "tokens");
  for (auto* places : {&inputs.positions, &inputs.newlines}) {
    for (auto& [name, buffer] : *places) visit(buffer, "positions of " + name);
  }
  for (auto& [name, items] : inputs.fields) visit(items.values, "items of " + name);
}

/// Sums over the valid tokens of a microbatch; plain sums over replicas and microbatches.
struct LossSums {
  double loss = 0.0;  ///< nats
  std::int64_t tokens = 0;
  std::int64_t correct = 0;
  std::int64_t content_tokens = 0;
  std::int64_t content_correct = 0;
  std::int64_t sequence_tokens = 0;  ///< all that were read, text and image, without padding
  std::int64_t samples = 0;          ///< that were read; several in a pack
  LossSums& operator+=(const LossSums& other);
  /// Return the shares of tokens, and of those in content words, that were predicted; 0 without any.
  double accuracy() const { return Share(correct, tokens); }
  double content_accuracy() const { return Share(content_correct, content_tokens); }

 private:
  static double Share(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
  }
};

/// In place of a unit.
inline constexpr std::int64_t kNoUnit = -1;

/// A unit is a microbatch, or a window of them for a colocated encoder. Counted from the start of
/// the run, never reused.
struct ForwardPass {
  std::int64_t unit = 0;
  bool train = true;           ///< false: no backward will come, keep nothing
  double loss_scale = 1.0;     ///< 1 / valid tokens of the global batch; the only scaling there is
  std::vector<Buffer> inputs;  ///< one per incoming link
  std::shared_ptr<const Inputs> data;         ///< where the stage reads data, else null
  std::shared_ptr<const RowTable> rows = {};  ///< where it reads none: the samples of its rows
  std::int64_t step = 0;                      ///< training: the step, from 0
  std::int64_t first_microbatch = 0;          ///< of the unit, counted from the round's start
  // For the losses of routers.
  double token_scale = 0.0;              ///< 1 / tokens of the global batch, without padding
  double sample_scale = 0.0;             ///< 1 / samples of the global batch
  std::int64_t next_backward = kNoUnit;  ///< the unit whose backward comes after this pass

  /// The samples of its rows; null: unknown.
  const RowTable* table() const { return data ? &data->table : rows.get(); }
};

struct ForwardResult {
  std::vector<Buffer> outputs;  ///< one per outgoing link
  LossSums loss;                ///< at a sink that computes a loss
  /// Called once when the work that makes the outputs has run. Fills in the loss and throws where a
  /// value on a device is not finite. Empty: the result is complete. Stays in its process.
  std::function<void(ForwardResult&)> finish = {};
};

struct BackwardPass {
  std::int64_t unit = 0;
  std::vector<Buffer> gradients;  ///< one per outgoing link; undefined = no gradient came back
  /// Computes only the gradients of the inputs now. The state for those of the weights is kept
  /// until BackwardWeights, which comes for every such unit, in the order of the backwards.
  bool split_weights = false;
  /// No other of the round follows: with it, or its BackwardWeights, gradients are complete.
  bool last = false;
  std::int64_t next_backward = kNoUnit;  ///< as of a ForwardPass
};

struct BackwardResult {
  std::vector<Buffer>
      gradients;  ///< one per incoming link; undefined where nothing upstream trains
  std::function<void(BackwardResult&)> finish = {};  ///< as ForwardResult::finish
};

struct ReducedGradients {
  /// This shard's share of the squared norm: over all shards each element counts once.
  double squared_norm = 0.0;
  std::map<std::string, double> squared_norms = {};    ///< the same, by module or projector
  std::function<void(ReducedGradients&)> finish = {};  ///< as ForwardResult::finish
};

/// One optimizer step, the same on every shard.
struct UpdateStep {
  std::int64_t step = 0;          ///< 1 at the first update (Adam's bias correction)
  double clip_coefficient = 1.0;  ///< gradients are multiplied by this
  double schedule = 1.0;  ///< progress factor in [0, 1]: rate = min + schedule * (max - min)
};

/// A piece of a named tensor as one shard holds it.
struct TensorPiece {
  std::string name;  ///< of the whole tensor, e.g. "language.layers.0.q.weight"
  Shape global_shape;
  std::vector<std::int64_t> offsets;  ///< of the piece in the whole, one per dimension
  Buffer value;
  bool owner = true;       ///< false if another shard holds the same piece and reports it
  bool in_folder = false;  ///< frozen, with the values of a Hugging Face folder: no run stores it
};

inline bool IsInFolder(const TensorPiece& piece) { return piece.in_folder; }

/// Called once when the state of a shard has moved, with the times of the copies or their error. It
/// runs on any thread and must not wait there.
using StateMovedCallback = std::function<void(const WorkTimes&)>;

enum class TensorKind { kParameter, kGradient, kFirstMoment, kSecondMoment };

/// A collective or copy of activations that ran concurrently with the functions of a program, or a
/// wait of theirs for one.
struct ConcurrentWork {
  WorkKind kind = WorkKind::kCollectiveWait;
  WorkTimes times;
};

class StageProgram {
 public:
  virtual ~StageProgram() = default;
  /// Throws on wrong input; the error names the expected and the actual input.
  virtual ForwardResult Forward(const ForwardPass& pass) = 0;
  /// Adds to the gradients of this shard's parameters.
  virtual BackwardResult Backward(const BackwardPass& pass) = 0;
  /// The rest of a split Backward: adds to the gradients of the weights. Does nothing in programs
  /// that compute them in Backward.
  virtual void BackwardWeights(std::int64_t unit) { static_cast<void>(unit); }
  /// Called between a forward and its backward: begins to copy the part of the state that
  /// ModuleConfig::offload names to host memory. Its device memory is free once `done` has been
  /// called. Returns when the copies are queued, not when they have run. Until the state is back,
  /// no function that needs it may be called. `done` is not called if this throws; it is called at
  /// once if no state leaves.
  virtual void Offload(StateMovedCallback done);
  /// Begins to copy the state back, after `done` of its Offload; `done` is called when a backward
  /// can run. Only Update needs the moments: they stay away unless `moments`, and otherwise come
  /// after the rest; functions that need them wait for them.
  virtual void Restore(bool moments, StateMovedCallback done);
  /// Sums the gradients over replicas and other holders of the same parameter, in place. Where
  /// replicas divide the optimizer's state, each gets the sums of the part that it updates. On a queue
  /// it runs on Lane::kCollectives, after all backwards are known to be done.
  virtual ReducedGradients ReduceGradients() = 0;
  /// Steps the optimizer and clears the gradients. Where replicas divide its state, the parameters
  /// that others update may arrive later: the functions that read them wait.
  virtual void Update(const UpdateStep& step) = 0;
  /// This shard's pieces of one kind, trainable parameters only except for kParameter. Where replicas
  /// divide the state, those that this shard updates: several of a tensor, or none.
  virtual std::vector<TensorPiece> Tensors(TensorKind kind) const = 0;
  /// Overwrites this shard's pieces of one kind; they must be exactly those that Tensors(kind)
  /// lists (name, offsets, shape, dtype), in any order, but those in folders may be left out; throws std::invalid_argument naming the
  /// first that is missing, unknown or different, and changes nothing then. Not while a pass is in
  /// flight. Replicas and others that hold the same piece must be given the same values. Where replicas
  /// divide the state, all of them must be given parameters, since they send them to each other.
  virtual void SetTensors(TensorKind kind, const std::vector<TensorPiece>& pieces) = 0;
  /// Called once before any CopyState, if there will be some: takes the memory for copies, in the
  /// background. Fresh memory costs more time than a copy. `first`: another shard, which holds the same
  /// state and stores it; copies are of what that one stores. Null: of what this one stores.
  virtual void PrepareCopies(const ShardAddress* first) { static_cast<void>(first); }
  /// Begins to copy what a checkpoint stores to host memory, which it keeps for later copies.
  /// Returns when the copies are queued; `done` is called when they have run, and not if this
  /// throws. Until then Update, SetTensors, Offload and CopyState may not be called; passes may.
  virtual void CopyState(StateMovedCallback done);
  /// The pieces of the last copy, as Tensors(kind) of the shard that stores them would have listed
  /// them. They keep their values as long as someone refers to them, and may be read on any thread. A copy that is
  /// made meanwhile needs other memory.
  virtual std::vector<TensorPiece> CopiedTensors(TensorKind kind) const;
  /// Returns those that have ended since the last call, with times by the clock of trace/clock.hpp.
  virtual std::vector<ConcurrentWork> TakeConcurrent() { return {}; }
  /// Bytes of parameters, gradients and optimizer state that are on the device now.
  virtual std::size_t state_bytes() const = 0;

 protected:
  /// What CopyState copies of Tensors(kind), of programs with little state.
  virtual std::vector<TensorPiece> TensorsToCopy(TensorKind kind) const;

 private:
  /// Of programs with little state, which do not copy it concurrently.
  std::map<TensorKind, std::vector<TensorPiece>> copied_;
};

/// What a checkpoint stores of a program, in this order.
inline constexpr std::array kStoredKinds = {TensorKind::kParameter, TensorKind::kFirstMoment,
                                            TensorKind::kSecondMoment};

/// Whether the shard that lists the piece writes it to checkpoints.
inline bool IsStoredHere(const TensorPiece& piece) { return piece.owner && !piece.in_folder; }

/// Makes the program of a shard; called on the device's own thread.
using ProgramFactory = std::function<std::unique_ptr<StageProgram>(const ShardAddress&)>;

}  // namespace troupe
