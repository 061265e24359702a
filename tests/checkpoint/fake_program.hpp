// The tensors of a shard without anything that computes, every element of the job with a value of
// its own.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "modules/stage_program.hpp"
#include "modules/tensor_pieces.hpp"

namespace troupe {

/// Tensors of module "m" for one shard of a layout with `tp_size` ranks:
///   m.matrix  [64, 32] float32, rows cut over tp
///   m.norm    [5] float64, the same on every tp rank
///   m.tail    [1, 3] float32, rows cut over tp: only the first rank has any
///   m.frozen  [7] float32, the same on every tp rank, without moments
class FakeProgram : public StageProgram {
 public:
  FakeProgram(const ShardAddress& shard, int tp_size, bool filled = false) : shard_(shard) {
    const std::int64_t rows = 64 / tp_size;
    const bool first = shard.tp == 0;
    for (const TensorKind kind :
         {TensorKind::kParameter, TensorKind::kFirstMoment, TensorKind::kSecondMoment}) {
      Add(kind, "m.matrix", {64, 32}, {rows * shard.tp, 0}, {rows, 32}, DType::kFloat32, true);
      Add(kind, "m.norm", {5}, {0}, {5}, DType::kFloat64, first);
      Add(kind, "m.tail", {1, 3}, {first ? 0 : 1, 0}, {first ? 1 : 0, 3}, DType::kFloat32, true);
    }
    Add(TensorKind::kParameter, "m.frozen", {7}, {0}, {7}, DType::kFloat32, first);
    if (filled) Fill();
  }

  ForwardResult Forward(const ForwardPass&) override { throw std::logic_error("forward"); }
  BackwardResult Backward(const BackwardPass&) override { throw std::logic_error("backward"); }
  ReducedGradients ReduceGradients() override { throw std::logic_error("gradients"); }
  void Update(const UpdateStep&) override { throw std::logic_error("update"); }
  std::vector<TensorPiece> Tensors(TensorKind kind) const override {
    const auto found = pieces.find(kind);
    return found == pieces.end() ? std::vector<TensorPiece>() : found->second;
  }
  void SetTensors(TensorKind kind, const std::vector<TensorPiece>& given) override {
    OverwritePieces(ToString(shard_), Tensors(kind), given);
  }
  std::size_t state_bytes() const override { return 0; }

  /// All values, kind by kind and piece by piece.
  std::vector<double> Values() const {
    std::vector<double> values;
    for (const auto& [kind, list] : pieces) {
      for (const TensorPiece& piece : list) {
        for (std::int64_t i = 0; i < piece.value.num_elements(); ++i) {
          values.push_back(piece.value.dtype() == DType::kFloat32
                               ? static_cast<double>(piece.value.as<float>()[i])
                               : piece.value.as<double>()[i]);
        }
      }
    }
    return values;
  }

  std::map<TensorKind, std::vector<TensorPiece>> pieces;  ///< tests change them

 private:
  void Add(TensorKind kind, const std::string& name, Shape whole, std::vector<std::int64_t> offsets,
           Shape shape, DType dtype, bool owner) {
    pieces[kind].push_back({.name = name,
                            .global_shape = std::move(whole),
                            .offsets = std::move(offsets),
                            .value = Buffer::Zeros(std::move(shape), dtype),
                            .owner = owner && shard_.dp == 0});
  }

  /// Values say kind, tensor and place in the whole, so equal places of replicas are equal.
  void Fill() {
    for (auto& [kind, list] : pieces) {
      for (std::size_t t = 0; t < list.size(); ++t) {
        const Buffer& value = list[t].value;
        const std::int64_t row = value.shape().size() > 1 ? value.shape()[1] : 1;
        for (std::int64_t i = 0; i < value.num_elements(); ++i) {
          const std::int64_t place = list[t].offsets[0] * row + i;
          const std::int64_t number =
              1 + place + 4096 * (static_cast<std::int64_t>(t) + 4 * static_cast<int>(kind));
          if (value.dtype() == DType::kFloat32) {
            value.as<float>()[i] = static_cast<float>(number);
          } else {
            value.as<double>()[i] = static_cast<double>(number) + 1e-12;
          }
        }
      }
    }
  }

  ShardAddress shard_;
};

/// All shards of module "m" with `dp` x `tp` ranks.
inline std::vector<ShardAddress> FakeShards(int dp, int tp) {
  std::vector<ShardAddress> shards;
  for (int d = 0; d < dp; ++d) {
    for (int t = 0; t < tp; ++t) {
      shards.push_back({.module = "m", .pp = 0, .dp = d, .tp = t, .cp = 0, .rank = d * tp + t});
    }
  }
  return shards;
}

}  // namespace troupe
