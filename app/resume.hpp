// Decides whether a job may go on from a checkpoint with another configuration, by the role of each
// key that differs (KeyRole, configs/schema.hpp), and says how to resume a failed job.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "configs/loader.hpp"
#include "configs/schema.hpp"
#include "transport/failure.hpp"

namespace troupe {

/// "key = value" of each key that `wanted` accepts, one per line.
std::string KeyLines(
    const Config& config,
    const std::function<bool(const std::string& key, const KeySpec& spec)>& wanted);

/// The name by which --accept accepts changes of the data and their order.
inline constexpr const char* kDataName = "data";

/// What a job takes from a checkpoint that it goes on from.
struct ResumeTerms {
  std::set<std::string> accepted;  ///< modules, projectors, kDataName: what may be another
  bool new_run = false;            ///< --from: tuning keys may also differ in the file
};

struct ResumeCheck {
  std::string refusal = {};             ///< why it may not resume; empty: it may
  std::vector<std::string> tuned = {};  ///< "optimizer.epsilon is 1e-06, that run has 1e-08"
  std::string layout = {};              ///< keys that change how the job is cut; empty: none
  std::string rounding = {};            ///< keys that change rounding; empty: none
};

/// Checks whether `now` can go on from a checkpoint that a run of `before` has written. Tuning keys
/// of a run that goes on may differ only by --set: a file that differs is more likely the wrong
/// file. Pure.
ResumeCheck CheckResume(const LoadedConfig& now, const Config& before,
                        const ResumeTerms& terms = {});

/// Returns the name by which a change of `key` is accepted; "" if it cannot be: "vision" of
/// "modules.vision.frozen", "vision_to_language" of "edges.vision.language.through.hidden".
std::string AcceptedBy(const std::string& key);

/// Whether keys decide differently which samples come in which order, apart from the rows
/// themselves. Pure.
bool OrdersDataAnew(const Config& now, const Config& before);

/// Why a run has no checkpoints if CheckpointConfig::periodic is false.
inline constexpr const char* kNotPeriodic = "(checkpoint.every and every_minutes are 0)";

/// Returns a line that tells the user of a run in `directory` that failed with `kind` how to resume
/// it, or that it cannot be resumed; empty if the cause does. `steps` is the step of the newest
/// complete checkpoint, 0 if there is none.
std::string AdviceAfterFailure(FailureKind kind, const std::string& directory, std::int64_t steps);

/// Like the above, with the step of the newest checkpoint on disk. No process may write there any
/// more.
std::string AdviceAfterFailure(FailureKind kind, const std::string& directory);

/// Reads the newest checkpoint of `directory` and compares its digests. If it is damaged, renames
/// it to NAME.damaged, so that the one before it becomes the newest, and returns a line for the
/// user. Throws std::runtime_error if a file cannot be read or renamed.
std::optional<std::string> SetAsideIfDamaged(const std::string& directory);

}  // namespace troupe
