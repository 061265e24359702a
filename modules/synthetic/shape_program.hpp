// A stage that computes nothing at all: its rows have the right shape and are zeros. For jobs in
// virtual time, of any depth and width: there a value would cost memory, and grow from stage to
// stage until it is none.
#pragma once

#include <map>

#include "modules/synthetic/synthetic_program.hpp"

namespace troupe {

class ShapeProgram : public StageProgram {
 public:
  ShapeProgram(std::int64_t hidden, SyntheticShape shape)
      : hidden_(hidden), shape_(std::move(shape)) {}

  ForwardResult Forward(const ForwardPass& pass) override;
  BackwardResult Backward(const BackwardPass& pass) override;
  ReducedGradients ReduceGradients() override { return {}; }
  void Update(const UpdateStep& step) override;
  std::vector<TensorPiece> Tensors(TensorKind) const override { return {}; }
  void SetTensors(TensorKind, const std::vector<TensorPiece>&) override {}
  std::size_t state_bytes() const override { return 0; }

 private:
  /// [rows, hidden] zeros, shared by all units: sent tensors are never written to.
  const Buffer& Zeros(std::int64_t rows);

  std::int64_t hidden_;
  SyntheticShape shape_;
  std::map<std::int64_t, Buffer> zeros_;                         ///< by number of rows
  std::map<std::int64_t, std::vector<std::int64_t>> in_flight_;  ///< rows by incoming link, by unit
};

/// Programs of the modules of `config`, as wide as their rows, whatever their kind.
ProgramFactory MakeShapePrograms(const Config& config);

}  // namespace troupe
