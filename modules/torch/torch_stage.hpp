// The stage program of one shard: passes in flight, gradients, the optimizer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <torch/csrc/autograd/function.h>
#include <torch/types.h>
#include <vector>

#include "modules/groups.hpp"
#include "modules/stage_program.hpp"
#include "modules/torch/activation_offload.hpp"
#include "modules/torch/context_group.hpp"
#include "modules/torch/deferred_weights.hpp"
#include "modules/torch/expert_group.hpp"
#include "modules/torch/numerics.hpp"
#include "modules/torch/offload.hpp"
#include "modules/torch/parameter_store.hpp"
#include "modules/torch/stage_body.hpp"
#include "modules/torch/tensor_group.hpp"

namespace troupe {

class TorchStage : public StageProgram {
 public:
  TorchStage(std::shared_ptr<const Config> config, const ShardAddress& shard,
             const Numerics& numerics, ShardGroups groups);

  ForwardResult Forward(const ForwardPass& pass) override;
  BackwardResult Backward(const BackwardPass& pass) override;
  /// The large multiplications; gradients of norms and embeddings are complete with Backward.
  void BackwardWeights(std::int64_t unit) override;
  void Offload(StateMovedCallback done) override;
  void Restore(bool moments, StateMovedCallback done) override;
  /// Throws std::logic_error while a backward is owed: its graph holds the gradients' future.
  ReducedGradients ReduceGradients() override;
  /// Throws std::logic_error while a backward is owed: it would run with the wrong weights.
  void Update(const UpdateStep& step) override;
  std::vector<TensorPiece> Tensors(TensorKind kind) const override;
  /// All kinds but gradients. Throws std::logic_error while a backward is owed.
  void SetTensors(TensorKind kind, const std::vector<TensorPiece>& pieces) override;
  void PrepareCopies(const ShardAddress* first) override;
  void CopyState(StateMovedCallback done) override;
  std::vector<TensorPiece> CopiedTensors(TensorKind kind) const override {
    return store_.CopiedPieces(kind);
  }
  std::vector<ConcurrentWork> TakeConcurrent() override;
  std::size_t state_bytes() const override { return store_.num_bytes() - offloaded_.bytes_away(); }

 private:
  /// What a forward leaves for its backward: edges of the graph, not the outputs themselves,
  /// so that the receiver alone decides how long those live.
  struct Flight {
    std::vector<at::Tensor> inputs;
    torch::autograd::edge_list outputs;
    double loss_scale = 1.0;
  };

  /// The tensor of a buffer that must be in the memory the stage computes in.
  at::Tensor Take(const Buffer& buffer, std::size_t num_dimensions, const std::string& what) const;
  std::vector<at::Tensor> TakeInputs(const std::vector<Buffer>& buffers, bool records) const;
  ForwardResult RunForward(const ForwardPass& pass);
  BackwardResult RunBackward(const BackwardPass& pass);
  torch::autograd::variable_list RootGradients(const Flight& flight,
                                               const BackwardPass& pass) const;
  BackwardResult InputGradients(const Flight& flight,
                                const torch::autograd::variable_list& roots) const;
  void RequireNothingInFlight(const char* action) const;

  std::shared_ptr<const Config> config_;
  std::string name_;
  std::unique_ptr<Communicator> tensor_communicator_;
  std::vector<bool> input_needs_gradient_;  ///< one per incoming link
  bool has_loss_ = false;                   ///< a sink that computes a loss
  bool runs_backward_ = false;
  Numerics numerics_;
  TensorGroupPtr tensor_group_;
  ContextGroupPtr context_group_;
  ExpertGroupPtr expert_group_;
  ParameterStore store_;
  OffloadedState offloaded_;
  std::unique_ptr<CopyLane> snapshots_;             ///< null before it is needed
  std::unique_ptr<ActivationOffload> activations_;  ///< null: all stay on the device
  std::unique_ptr<StageBody> body_;
  std::int64_t last_unit_ = -1;                 ///< the last of a round whose backwards are split
  std::map<std::int64_t, WeightWork> weights_;  ///< by unit: the rest of split backwards
  std::map<std::int64_t, Flight> flights_;  ///< by unit; destroyed first, as graphs use the rest
};

}  // namespace troupe
