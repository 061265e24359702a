// What a run is, as the user wrote it: one struct per table of the TOML file, defaults included.
// docs/config.md describes every key; configs/loader.hpp reads them and refuses everything else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layout/grid.hpp"

namespace troupe {

/// Number type of parameters, activations and gradients. float64 is for `verify`. bfloat16 is that
/// of activations and what multiplies them; parameters and gradients are kept in float32.
enum class Precision { kFloat32, kFloat64, kBFloat16 };

struct RunConfig {
  std::string name = "run";
  std::string dir = "runs";  ///< the run directory is made inside it
  std::int64_t steps = 100;
  std::uint64_t seed = 0;
  Precision precision = Precision::kFloat32;
  bool tf32 = false;                ///< a GPU may round factors of float32 products to 10 bits
  std::int64_t evaluate_every = 0;  ///< steps between held-out evaluations; 0 = first and last only
  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

/// A machine of the job and how many ranks live on it.
struct ClusterNode {
  std::string name;     ///< lower-case letters, digits, '.', '_' and '-'; no two are the same
  std::string address;  ///< where the other nodes reach it, name or IP; "" = the launcher knows
  int devices = 0;      ///< ranks are numbered through in the order of the nodes
  friend bool operator==(const ClusterNode&, const ClusterNode&) = default;
};

/// Whether the ranks of a node share a process.
enum class ProcessesPer { kNode, kDevice };

/// Whether connections between processes are encrypted. kAuto: when the join address is neither
/// loopback nor private.
enum class ClusterTls { kAuto, kOn, kOff };

/// What a rank is: a thread, or a GPU with one.
enum class Backend { kCpu, kCuda };
/// In the order of Backend.
inline const std::vector<std::string> kBackendWords = {"cpu", "cuda"};
const std::string& ToString(Backend backend);

struct ClusterConfig {
  Backend backend = Backend::kCpu;
  int ranks = 1;          ///< devices in the job
  int ranks_per_gpu = 1;  ///< cuda: ranks of a node that share a GPU, in their order
  /// Filled by the loader, one node when the file says nothing; the devices add up to `ranks`.
  std::vector<ClusterNode> nodes = {};
  ProcessesPer processes = ProcessesPer::kNode;
  std::string join = "";  ///< HOST:PORT where process 0 listens; "" = not said here
  double join_timeout_s = 60.0;
  double heartbeat_ms = 250.0;
  double suspect_after_s = 1.0;   ///< more than two heartbeats
  double dead_after_s = 4.0;      ///< more than suspect_after_s
  double stuck_after_s = 5.0;     ///< one handler of an actor
  double pass_timeout_s = 300.0;  ///< one pass on a device
  double stall_after_s = 10.0;    ///< nothing moves anywhere in the job
  ClusterTls tls = ClusterTls::kAuto;
  std::string tls_ca = "";  ///< PEM files; all three or none
  std::string tls_certificate = "";
  std::string tls_key = "";
  friend bool operator==(const ClusterConfig&, const ClusterConfig&) = default;
};

/// The GPU of its node that a rank of backend "cuda" computes on, counted from 0 as the driver
/// shows them to its process.
int GpuOf(const ClusterConfig& cluster, int rank);
/// GPUs that the node with the most ranks needs for it.
int GpusNeeded(const ClusterConfig& cluster);
/// Why the ranks of one process cannot compute on so many GPUs, or empty: "expected 2 GPUs for
/// ranks 0-1 with at most 1 on each, found 1 (...)".
std::string MissingGpus(const ClusterConfig& cluster, const std::vector<int>& ranks, int found);

/// What is checked of a message between processes.
enum class TransportVerify { kOff, kHeader, kPayload };

/// What carries tensors over TCP between processes that do not share memory.
enum class TransportTcp {
  kAuto,    ///< kProven, unless ucx_tls names TCP
  kProven,  ///< connections that have proven the run key
  kUcx      ///< UCX, which listens on a port
};

struct TransportConfig {
  TransportTcp tcp = TransportTcp::kAuto;
  TransportVerify verify = TransportVerify::kHeader;
  std::string ucx_tls = "auto";  ///< "auto", or what UCX_TLS would say
  std::string net_devices = "";  ///< interfaces; "" = the one of the node's address
  std::string port_range = "";   ///< "7500-7600"; "" = any
  std::int64_t spin_us = 0;
  friend bool operator==(const TransportConfig&, const TransportConfig&) = default;
};

/// Whether a list of UCX's transports has TCP in it.
bool NamesTcp(const std::string& ucx_tls);

struct CheckpointConfig {
  std::int64_t every = 0;       ///< steps between checkpoints; 0 = none by steps
  double every_minutes = 10.0;  ///< the same by time; 0 = none by time
  std::int64_t keep = 2;        ///< newest ones that are kept

  /// Whether the run writes checkpoints before its end.
  bool periodic() const { return every > 0 || every_minutes > 0; }
  friend bool operator==(const CheckpointConfig&, const CheckpointConfig&) = default;
};

/// CLIP-style vision transformer. Layers after the feature layer are not built.
struct VitConfig {
  std::int64_t image_size = 0;  ///< pixels, square
  std::int64_t patch_size = 0;  ///< pixels, divides image_size
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t mlp_hidden = 0;
  std::int64_t feature_layer =
      -1;                    ///< index into (embedding, layer 1, ..., layer n); -2 = last but one
  bool class_token = false;  ///< whether the feature keeps the class token's row
  double norm_epsilon = 1e-5;

  std::int64_t num_patches() const { return (image_size / patch_size) * (image_size / patch_size); }
  std::int64_t rows_per_image() const { return num_patches() + (class_token ? 1 : 0); }
  /// Layers that are built: those up to the feature layer, [0, layers].
  std::int64_t built_layers() const {
    return feature_layer < 0 ? layers + 1 + feature_layer : feature_layer;
  }
  friend bool operator==(const VitConfig&, const VitConfig&) = default;
};

/// Llama-style language model.
struct LlamaConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< divides heads
  std::int64_t mlp_hidden = 0;
  std::int64_t context = 0;  ///< tokens per sample, image tokens included
  double rope_base = 10'000.0;
  bool tied_head = false;
  double norm_epsilon = 1e-5;
  friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;
};

/// Computes nothing and takes a stated time: for schedules and benchmarks.
struct SyntheticConfig {
  double forward_ms = 1.0;  ///< per stage and microbatch
  double backward_ms = 2.0;
  double weight_share = 0.5;  ///< of backward_ms: what the weights' part of a split backward takes
  std::int64_t hidden = 8;    ///< width of a boundary row, float64
  std::int64_t rows_per_sample = 1;
  friend bool operator==(const SyntheticConfig&, const SyntheticConfig&) = default;
};

enum class ModuleKind { kVit, kLlama, kSynthetic };

/// Which field of a sample an encoder reads, and which word in the text its rows replace.
struct InputConfig {
  std::string field = "image";
  std::string placeholder = "<image>";
  friend bool operator==(const InputConfig&, const InputConfig&) = default;
};

/// A module's own values over [optimizer].
struct OptimizerOverride {
  std::optional<double> learning_rate = {};
  std::optional<double> min_learning_rate = {};
  std::optional<double> weight_decay = {};
  friend bool operator==(const OptimizerOverride&, const OptimizerOverride&) = default;
};

/// What of a layer is computed again in its backward, so that it need not be kept until then.
enum class Recompute { kNone, kAttention, kFull };

/// What of a colocated encoder leaves its devices while the language model computes.
enum class Offload { kNone, kParameters, kState };

struct ModuleConfig {
  std::string name;
  ModuleKind kind = ModuleKind::kSynthetic;
  std::vector<int> ranks = {};  ///< empty when inline
  Layout layout = {};
  AxisOrder axis_order = kDefaultAxisOrder;
  std::optional<std::string> inline_in = {};        ///< the module whose first stage it runs in
  std::vector<std::int64_t> layers_per_stage = {};  ///< empty = "balanced"
  std::optional<InputConfig> input = {};
  bool frozen = false;
  Recompute recompute = Recompute::kNone;
  Offload offload = Offload::kNone;  ///< kState: gradients and moments too
  /// Gradients that each replica of the language model still owes when what has left comes back.
  /// None: half the stages of its pipeline.
  std::optional<std::int64_t> offload_ahead = {};
  OptimizerOverride optimizer = {};
  int chunks = 1;                  ///< pipeline stages on each rank; filled by SetChunks
  VitConfig vit = {};              ///< when kind is kVit
  LlamaConfig llama = {};          ///< when kind is kLlama
  SyntheticConfig synthetic = {};  ///< when kind is kSynthetic

  /// Pipeline stages. Stage s is on the ranks with pp = s % layout.pp: with more than one chunk
  /// these are virtual stages.
  int num_stages() const { return layout.pp * chunks; }
  /// Whether the first and the last stage each have a copy of the embedding.
  bool head_tied_across_stages() const {
    return kind == ModuleKind::kLlama && llama.tied_head && num_stages() > 1;
  }
  friend bool operator==(const ModuleConfig&, const ModuleConfig&) = default;
};

enum class ProjectorEnd { kFrom, kTo };

/// Two linear layers with a GELU between, from the source's hidden size to the destination's.
struct ProjectorConfig {
  std::int64_t hidden = 0;
  ProjectorEnd on = ProjectorEnd::kFrom;
  bool frozen = false;
  friend bool operator==(const ProjectorConfig&, const ProjectorConfig&) = default;
};

struct EdgeConfig {
  std::string from;
  std::string to;
  std::optional<ProjectorConfig> through = {};  ///< none: the hidden sizes must be equal
  int credits = 4;
  friend bool operator==(const EdgeConfig&, const EdgeConfig&) = default;
};

/// The rule by which a stage picks its next pass.
enum class ScheduleKind { k1F1B, kGpipe, kInterleaved, kZbH1, kCsv };
/// In the order of ScheduleKind.
inline const std::vector<std::string> kScheduleWords = {"1f1b", "gpipe", "interleaved", "zb-h1",
                                                        "csv"};
const std::string& ToString(ScheduleKind kind);
/// The kind of that word, if there is one.
std::optional<ScheduleKind> ScheduleKindOf(std::string_view word);

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::k1F1B;
  std::int64_t chunks = 0;            ///< interleaved, csv: stages per rank; 0 = 2 and 1
  std::string file = "";              ///< csv: the orders; as data.train
  std::string file_text = "";         ///< what it says; filled by the loader
  std::int64_t micro_batch_size = 1;  ///< samples per language-model replica and microbatch
  std::int64_t microbatches = 1;      ///< per step
  std::int64_t window = 0;            ///< colocated: microbatches per encoder pass; 0 = "step"
  friend bool operator==(const ScheduleConfig&, const ScheduleConfig&) = default;
};

struct OptimizerConfig {
  std::string kind = "adamw";
  double learning_rate = 1e-3;
  double min_learning_rate = 0.0;
  std::int64_t warmup_steps = 0;
  std::string schedule = "cosine";  ///< "cosine" | "constant"
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  double clip_norm = 1.0;  ///< 0 = no clipping
  friend bool operator==(const OptimizerConfig&, const OptimizerConfig&) = default;
};

struct DataConfig {
  std::string format = "llava";
  std::string train;                ///< as it is opened from the working directory
  std::string held_out;             ///< empty: no evaluation
  std::string tokenizer = "bytes";  ///< or "sentencepiece:FILE"
  std::string on_error = "stop";    ///< or "skip": rows that cannot be used
  std::int64_t skip_limit = 100;    ///< rows of both lists that "skip" may leave out
  friend bool operator==(const DataConfig&, const DataConfig&) = default;
};

struct TraceConfig {
  bool messages = true;
  std::int64_t buffer_mib = 16;  ///< of each process
  friend bool operator==(const TraceConfig&, const TraceConfig&) = default;
};

struct Config {
  RunConfig run;
  ClusterConfig cluster;
  TransportConfig transport;
  std::vector<ModuleConfig> modules;  ///< in the order of the file
  std::vector<EdgeConfig> edges;
  ScheduleConfig schedule;
  OptimizerConfig optimizer;
  DataConfig data;
  TraceConfig trace;
  CheckpointConfig checkpoint;

  const ModuleConfig* Find(const std::string& module) const;
  /// The module whose data parallelism defines the microbatch: the first one that feeds no other.
  const ModuleConfig& Sink() const;
  /// Samples in one microbatch of the whole job: micro_batch_size * dp(sink).
  std::int64_t samples_per_microbatch() const;
  std::int64_t global_batch() const { return samples_per_microbatch() * schedule.microbatches; }
  friend bool operator==(const Config&, const Config&) = default;
};

/// Sets `chunks` of every module from the schedule. Only the module that defines the microbatch
/// (Config::Sink) has virtual stages: it is the deep one, and whatever feeds it follows it.
void SetChunks(Config& config);

/// Hidden size of the rows a module emits or takes.
std::int64_t HiddenSize(const ModuleConfig& module);

/// The grid of a module; an inline module has its host's. Throws LayoutError.
Grid GridOf(const Config& config, const ModuleConfig& module);

/// How the edge is carried: kInline when the source runs inside the destination, else PlacementOf.
Placement PlacementOfEdge(const Config& config, const EdgeConfig& edge);

/// Microbatches per encoder pass of colocated edges, in a round of `microbatches`.
std::int64_t WindowOf(const Config& config, std::int64_t microbatches);

}  // namespace troupe
