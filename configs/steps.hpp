// The steps of LoadConfig (configs/loader.hpp), in their order.
#pragma once

#include <string>
#include <vector>

#include "configs/loader.hpp"
#include "configs/report.hpp"
#include "configs/schema.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// Returns the file at `path` merged with all files that it extends. Adds unreadable files, syntax
/// errors and cycles to `errors`.
TomlValue ReadFiles(const std::string& path, std::vector<ConfigError>& errors);

/// Parses one `KEY=VALUE` as a separate document. All its places are the argument. A bare word is a
/// string, with every # and quote in it, and so is an empty value.
TomlValue ReadOverride(const std::string& text, std::vector<ConfigError>& errors);

/// Merges `over` into `base`, key by key. Values of `over` win and keep the values that they
/// replace. Lists are replaced, [[edges]] merge by (from, to), `layout = {}` replaces the whole
/// table. A module given inline_in loses its inherited ranks and layout, and vice versa; likewise
/// schedule.global_batch and microbatches, run.epochs and steps, optimizer.warmup_ratio and
/// warmup_steps.
void Merge(TomlValue& base, TomlValue over);

/// Returns "vision.language" for an edge with `from` and `to`, "" if one of them is not a string.
std::string EdgeName(const TomlValue& edge);

/// Completes the modules and projectors that state a folder as `weights` with the keys of their kind
/// from its config.json and its image processor; stated keys win. `model.from` counts as the
/// `weights` of all that state none. Adds folders that cannot be used to `errors`. Returns what each
/// folder gave.
std::vector<ReadFolder> CompleteFromFolders(TomlValue& tree, std::vector<ConfigError>& errors);

/// Reads every correct key by the schema. Reports unknown, missing and malformed keys.
Config ReadTree(const TomlValue& tree, Report& report, Origins& origins, ShapingInputs& inputs);

/// Divides the ranks evenly among nodes without devices, if that is possible. Adds the one node of
/// a file that names none.
void FillNodes(ClusterConfig& cluster);

/// Fills unset keys of modules as KeySpec::otherwise describes, and the input of the only encoder.
void FillDefaults(Config& config, const Report& report);

/// Sets the fit of every module that reads images to `inputs.image_fit`, if it is stated. Reports a
/// module that states another one. Fills the grids of tiles, and reports those of modules without
/// tiles.
void SettleImages(Config& config, const ShapingInputs& inputs, Report& report);

/// Sets the microbatches from `inputs.global_batch`. Reports a batch that is not a multiple of a
/// microbatch, with the nearest that are, and one that contradicts `microbatches`.
void SettleBatch(Config& config, const ShapingInputs& inputs, Report& report);

/// Fills `file_text` if the kind of schedule has a file.
void ReadScheduleFile(ScheduleConfig& schedule, Report& report);

}  // namespace troupe
