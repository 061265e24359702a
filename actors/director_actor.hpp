// The whole job: begins rounds, adds up their results, decides when to end.
//   receives  RunJob     answers JobDone after the last round, or with the first failure
//             JobFailed  from the abort signal
//             StopSoon   completes the rounds that have begun, begins no more
//             SaveSoon   makes a checkpoint due
//   sends     RoundBegin to phases, feeds and stages; a stage's answer is its StageReport
//             UpdateRound to every update in a training round; the answer is its SquaredNorm
//             ApplyUpdate with the squared norms of the others; the answer is UpdateDone
//             SaveState, if a checkpoint or a mirror of a round is due; the answer is StateSaved.
//             Shards without an update get CopyState when the job begins, and SaveShard instead
//             PublishManifest to the other disks of the job, then to that of process 0
//             HoldMirror, then CompleteHeld, to Nodes
//
//   begin r      when fewer than `rounds_ahead` + 1 rounds are open
//   apply        to the last update when all other squared norms of r have arrived, to the others
//                when its own has, too: the latest update waits for no other
//                not while mirror_course.hpp holds it back
//   mirror       when mirror_course.hpp says so. Complete when all processes hold it
//   checkpoint   when checkpoint_course.hpp says so. Complete when all shards are written
//     the last   when the user ends the job: when all rounds are complete
//   complete r   when all stage reports (and, training, all UpdateDone) of r have arrived
//
// Without clipping and mirrors no update waits for the Director, so rounds overlap without a job-wide
// barrier.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/actor_base.hpp"
#include "actors/checkpoint_course.hpp"
#include "actors/job_course.hpp"
#include "actors/mirror_course.hpp"
#include "configs/config.hpp"
#include "messages/device.hpp"
#include "messages/disk.hpp"
#include "messages/round.hpp"
#include "plan/mirrors.hpp"
#include "plan/process_plan.hpp"

namespace troupe {

struct DirectorConfig : JobCourse {
  std::vector<Stage> stages;
  std::vector<std::vector<int>> ranks = {};           ///< by stage: of its shards
  SlowRanks slow = {};                                ///< that have become so
  std::shared_ptr<const ProcessPlan> processes = {};  ///< null if no rank is named
  std::vector<std::string> sinks;  ///< by stage: its module if it is a sink, else empty
  std::vector<Feed> feeds;
  std::vector<Phase> phases;
  std::vector<Update> updates;
  /// (rank, stage index) of all shards of the job, by lock step.
  std::vector<std::pair<LockStep, std::vector<std::pair<int, int>>>> shards;
  /// Those of them that no update changes.
  std::vector<std::pair<LockStep, std::vector<std::pair<int, int>>>> constant_shards;
  ManifestDisk disk;                ///< with the run directory
  std::vector<ManifestDisk> apart;  ///< of machines that do not see it
  std::vector<Holder> holders;      ///< by process; empty: none mirrors another
  MirrorPlan mirrors;
  OpenElsewhere open_elsewhere;              ///< files on other machines; empty: there are none
  std::map<caf::actor_addr, ActorId> names;  ///< of the actors it sends requests to, for errors
  OptimizerConfig optimizer;
  std::int64_t steps = 0;  ///< of the whole run, for the learning-rate schedule
  std::shared_ptr<InputSource> source;
  std::shared_ptr<TensorStore> tensors;  ///< fetches the tensors of other processes
  std::shared_ptr<AbortSignal> abort;
};

struct DirectorState {
  static constexpr const char* name = "director";

  struct OpenRound {
    RoundResult result;
    // Requests without an answer, by place in the configuration.
    std::set<std::size_t> missing_reports;
    std::set<std::size_t> missing_norms;
    std::set<std::size_t> missing_updates;
    std::set<std::size_t> applied;  ///< updates that ApplyUpdate has been sent to
    // By update and by stage, so that sums do not depend on the order of the answers.
    std::vector<double> squared_norms;
    std::vector<std::map<std::string, double>> part_norms;  ///< squared
    std::vector<LossSums> losses;
    std::map<int, double> own_s;  ///< by rank: of its passes, without waits for others
  };

  /// A checkpoint that is written while rounds run.
  struct Saving {
    SaveOrder order;
    std::optional<std::vector<SavedShard>> shards = {};  ///< once all are written
    bool is_publishing = false;                          ///< its manifest is being written
  };
  /// An ApplyUpdate that a mirror holds back.
  struct HeldBack {
    std::int64_t round = 0;
    std::size_t update = 0;
    std::int64_t since_ns = 0;
  };

  DirectorConfig config;
  std::map<std::int64_t, OpenRound> open;  ///< by number
  std::int64_t next_round = 0;
  bool last_begun = false;
  bool finishing = false;
  bool storing = false;  ///< shards are being saved or loaded: no round begins
  CheckpointCourse course;
  std::optional<Saving> saving;
  MirrorCourse mirrors;
  std::vector<HeldBack> held_back;
  /// The state under way, once all processes hold it.
  struct Mirrored {
    SaveOrder order;
    std::vector<SavedShard> shards;
  };
  std::optional<Mirrored> mirrored;
  bool stopped_early = false;     ///< StopSoon has come
  std::int64_t completed_ns = 0;  ///< when the latest round was complete
  Promise<JobDone> done;          ///< the answer to RunJob
};

Director::behavior_type RunDirector(ActorPointer<Director, DirectorState> self,
                                    DirectorConfig config);

}  // namespace troupe
