// The rows of tables A2 to A5 of arXiv 2605.27678: what they print, and the settings that were inferred.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layout/grid.hpp"

namespace troupe::bench {

/// Where the encoder runs: in the first stage of the language model (H), on all its ranks in turns with
/// it (C), or on separate ranks (NC).
enum class Mode { kHomogeneous, kColocated, kSeparate };
/// "H", "C", "NC".
std::string ToString(Mode mode);

/// Inferred: how much of the collectives along tp the software hides, and how fast it computes.
enum class Stack {
  kFast,  ///< hides them all
  kMid,   ///< hides none
  kSlow   ///< hides none, and the language model takes longer
};

/// Inferred: what the encoder computes for a token.
enum class Regime {
  kA,  ///< forward and backward, and it keeps the activations of all layers
  kB   ///< as much as a forward takes, and it keeps those of one layer
};

struct LanguageSize {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t mlp_hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t vocab = 0;
  double key_width() const {
    return static_cast<double>(hidden) * static_cast<double>(kv_heads) / static_cast<double>(heads);
  }
  double layer_parameters() const;
  double head_parameters() const {
    return static_cast<double>(hidden) * static_cast<double>(vocab);
  }
};

struct EncoderSize {
  std::int64_t layers = 0;
  std::int64_t width = 0;
  double parameters() const {
    return 12.0 * static_cast<double>(width) * static_cast<double>(width) *
           static_cast<double>(layers);
  }
};

/// One row in one mode. `encoder.dp` counts the replicas of the encoder over all its ranks.
struct PaperJob {
  std::string id;
  Mode mode = Mode::kHomogeneous;
  double encoder_billions = 0.0;
  double language_billions = 0.0;
  EncoderSize encoder_size = {};
  LanguageSize language_size = {};
  std::int64_t tokens = 0;    ///< of a sample
  double vision_share = 0.0;  ///< of these tokens
  int samples = 0;            ///< of a step
  int devices = 0;
  bool passes_only = false;  ///< the time is that of forwards and backwards (table A3)
  bool prints_microbatches = false;
  Layout encoder = {};
  Layout language = {};
  int optimizer_instances = 1;  ///< of the encoder's optimizer
  std::optional<double> measured_ms = {};
  std::optional<double> measured_gb = {};
  // Settings: unset until they are given or chosen by a rule.
  std::optional<Stack> stack = {};
  std::optional<Regime> regime = {};
  std::vector<std::int64_t> split = {};  ///< layers of each stage of the language model

  /// Microbatches of one sample.
  int microbatches() const { return std::max(1, samples / language.dp); }
  /// Of a sample, for the encoder.
  double encoder_tokens() const { return static_cast<double>(tokens) * vision_share; }
};

/// A row of A2, A3 or A4: H and another mode. One that could not be read is missing.
struct PaperRow {
  std::string id;
  std::vector<PaperJob> jobs;
};

/// A row of A5: the modes of one workload.
struct Contest {
  std::string id;
  PaperJob workload;  ///< sizes, tokens and samples; of NC the encoder's layout and the settings
  std::map<Mode, int> devices = {};
  bool colocated_is_homogeneous = false;     ///< the best colocated layout is that of H
  std::optional<double> separate_gain = {};  ///< of tokens per second over H, in percent
  std::string best = {};
};

struct PaperTables {
  std::vector<PaperRow> rows;
  std::vector<Contest> contests;
};

/// Reads the tables that are in `folder`, and the settings unless `blind`. What a row lacks goes to
/// standard error, and its job is left out. Throws std::runtime_error: no table, or not such a table.
PaperTables ReadPaperTables(const std::string& folder, bool blind);

}  // namespace troupe::bench
