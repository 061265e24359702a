#include "modules/stage_program.hpp"

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
