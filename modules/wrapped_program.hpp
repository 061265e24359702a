#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "modules/stage_program.hpp"

namespace troupe {

/// Forwards every call to another program. Classes that observe or disturb a program override the
/// calls that concern them.
class WrappedProgram : public StageProgram {
 public:
  explicit WrappedProgram(std::unique_ptr<StageProgram> inner) : program(std::move(inner)) {}

  ForwardResult Forward(const ForwardPass& pass) override { return program->Forward(pass); }
  BackwardResult Backward(const BackwardPass& pass) override { return program->Backward(pass); }
  void BackwardWeights(std::int64_t unit) override { program->BackwardWeights(unit); }
  void Offload(StateMovedCallback done) override { program->Offload(std::move(done)); }
  void Restore(bool moments, StateMovedCallback done) override {
    program->Restore(moments, std::move(done));
  }
  ReducedGradients ReduceGradients() override { return program->ReduceGradients(); }
  void Update(const UpdateStep& step) override { program->Update(step); }
  std::vector<TensorPiece> Tensors(TensorKind kind) const override {
    return program->Tensors(kind);
  }
  void SetTensors(TensorKind kind, const std::vector<TensorPiece>& pieces) override {
    program->SetTensors(kind, pieces);
  }
  void PrepareCopies(const ShardAddress* first) override { program->PrepareCopies(first); }
  void CopyState(StateMovedCallback done) override { program->CopyState(std::move(done)); }
  std::vector<TensorPiece> CopiedTensors(TensorKind kind) const override {
    return program->CopiedTensors(kind);
  }
  std::vector<ConcurrentWork> TakeConcurrent() override { return program->TakeConcurrent(); }
  std::size_t state_bytes() const override { return program->state_bytes(); }

 protected:
  const std::unique_ptr<StageProgram> program;
};

}  // namespace troupe
