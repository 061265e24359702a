// How a round of microbatches begins and ends: Director to stages, feeds, updates and phases.
// Every report is the answer to a request, so nobody below the Director needs its handle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/local.hpp"
#include "messages/pipeline.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

struct RoundBegin {
  Round round;
};

/// A stage's answer to RoundBegin, once its last unit of the round is behind it.
struct StageReport {
  std::int64_t round = 0;
  std::int64_t busy_ns = 0;  ///< summed over the stage's shards
  LossSums loss;
};

/// Inputs of one unit, from the Feed. The answer says that the unit's forward has run, which is
/// the Feed's leave to bring another.
struct Input {
  std::int64_t unit = 0;
  std::shared_ptr<const Inputs> data;
};
struct InputTaken {
  std::int64_t unit = 0;
};

using Stage = Downstream::extend<caf::replies_to<RoundBegin>::with<StageReport>,
                                 caf::replies_to<Input>::with<InputTaken>>;

using Feed = caf::typed_actor<caf::reacts_to<RoundBegin>>;
using Phase = Downstream::extend<caf::reacts_to<RoundBegin>>;

/// From a stage replica to its Update: my last backward of `round` is done. The answer comes when
/// the parameters have stepped.
struct BackwardsDone {
  std::int64_t round = 0;
};
struct Updated {
  std::int64_t round = 0;
};

/// From the Director to an Update: this round ends in an optimizer step. Answered with this
/// update's share of the squared gradient norm once every replica's gradients are summed.
struct UpdateRound {
  std::int64_t round = 0;
  UpdateStep step;
  bool wait = false;  ///< do not step before ApplyUpdate: the coefficient is not known yet
};
struct SquaredNorm {
  std::int64_t round = 0;
  double value = 0.0;
};

/// From the Director: the coefficient is known. Answered when the parameters have stepped. Sent
/// (and answered) also when the step did not wait.
struct ApplyUpdate {
  std::int64_t round = 0;
  double clip_coefficient = 1.0;
};
struct UpdateDone {
  std::int64_t round = 0;
  std::int64_t busy_ns = 0;
};

using Update = caf::typed_actor<caf::replies_to<BackwardsDone>::with<Updated>,
                                caf::replies_to<UpdateRound>::with<SquaredNorm>,
                                caf::replies_to<ApplyUpdate>::with<UpdateDone>>;

}  // namespace troupe

TROUPE_LOCAL_MESSAGE(troupe::RoundBegin)
TROUPE_LOCAL_MESSAGE(troupe::StageReport)
TROUPE_LOCAL_MESSAGE(troupe::Input)
TROUPE_LOCAL_MESSAGE(troupe::InputTaken)
TROUPE_LOCAL_MESSAGE(troupe::BackwardsDone)
TROUPE_LOCAL_MESSAGE(troupe::Updated)
TROUPE_LOCAL_MESSAGE(troupe::UpdateRound)
TROUPE_LOCAL_MESSAGE(troupe::SquaredNorm)
TROUPE_LOCAL_MESSAGE(troupe::ApplyUpdate)
TROUPE_LOCAL_MESSAGE(troupe::UpdateDone)
