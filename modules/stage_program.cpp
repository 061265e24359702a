#include "modules/stage_program.hpp"

#include <cstring>
#include <utility>

#include "trace/clock.hpp"

namespace troupe {

void StageProgram::Offload(StateMovedCallback done) {
  const std::int64_t now_ns = NowNs();
  done({now_ns, now_ns, ""});
}

void StageProgram::Restore(bool /*moments*/, StateMovedCallback done) {
  const std::int64_t now_ns = NowNs();
  done({now_ns, now_ns, ""});
}

void StageProgram::CopyState(StateMovedCallback done) {
  const std::int64_t begin_ns = NowNs();
  for (const TensorKind kind : kStoredKinds) {
    std::vector<TensorPiece>& copies = copied_[kind];
    copies.clear();
    for (TensorPiece& piece : TensorsToCopy(kind)) {
      const Buffer live = piece.value;
      piece.value = Buffer::Allocate(live.shape(), live.dtype());
      std::memcpy(piece.value.data(), live.data(), live.num_bytes());
      copies.push_back(std::move(piece));
    }
  }
  done({begin_ns, NowNs(), ""});
}

std::vector<TensorPiece> StageProgram::CopiedTensors(TensorKind kind) const {
  return copied_.at(kind);
}

std::vector<TensorPiece> StageProgram::TensorsToCopy(TensorKind kind) const {
  std::vector<TensorPiece> pieces = Tensors(kind);
  std::erase_if(pieces, [](const TensorPiece& piece) { return !IsStoredHere(piece); });
  return pieces;
}

LossSums& LossSums::operator+=(const LossSums& other) {
  loss += other.loss;
  tokens += other.tokens;
  correct += other.correct;
  content_tokens += other.content_tokens;
  content_correct += other.content_correct;
  sequence_tokens += other.sequence_tokens;
  samples += other.samples;
  return *this;
}

}  // namespace troupe
