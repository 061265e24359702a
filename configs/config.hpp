// The configuration of a run: one struct per table of the TOML file, defaults included.
// docs/config.md describes every key. configs/loader.hpp reads them and refuses all others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/kind.hpp"
#include "kinds/projector.hpp"
#include "layout/grid.hpp"

namespace troupe {

/// Number type of parameters, activations and gradients. float64 is for `verify`. With bfloat16,
/// activations and the weights that multiply them are bfloat16; parameters and gradients stay in
/// float32.
enum class Precision { kFloat32, kFloat64, kBFloat16 };

struct RunConfig {
  std::string name = "run";
  std::string dir = "runs";           ///< the run directory is made inside it
  std::int64_t steps = 100;           ///< with `epochs`: 0 until the rows are counted
  std::optional<double> epochs = {};  ///< passes over the training rows, in place of `steps`
  std::uint64_t seed = 0;
  Precision precision = Precision::kFloat32;
  bool tf32 = false;                ///< a GPU may round factors of float32 products to 10 bits
  std::int64_t evaluate_every = 0;  ///< steps between held-out evaluations; 0 = first and last only
  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

/// A machine of the job and how many ranks live on it.
struct ClusterNode {
  std::string name;     ///< lower-case letters, digits, '.', '_' and '-'; unique
  std::string address;  ///< where the other nodes reach it, name or IP; "" = the launcher knows
  int devices = 0;      ///< ranks are numbered in the order of the nodes
  friend bool operator==(const ClusterNode&, const ClusterNode&) = default;
};

/// Whether the ranks of a node share a process.
enum class ProcessesPer { kNode, kDevice };

/// Whether connections between processes are encrypted. kAuto encrypts unless the join address is
/// loopback or private.
enum class ClusterTls { kAuto, kOn, kOff };

/// The device of a rank: a CPU thread, or a GPU with a thread.
enum class Backend { kCpu, kCuda };
/// In the order of Backend.
inline const std::vector<std::string> kBackendWords = {"cpu", "cuda"};
const std::string& ToString(Backend backend);

/// The links between devices, for estimates of times. What is unset is as the kind of device has it.
struct TopologyConfig {
  std::optional<std::int64_t> devices_per_node = {};
  std::optional<double> inside_gb_per_s = {};   ///< between devices of a node, of each, one way
  std::optional<double> between_gb_per_s = {};  ///< between nodes, likewise
  std::optional<double> inside_us = {};         ///< until the first byte arrives
  std::optional<double> between_us = {};
  friend bool operator==(const TopologyConfig&, const TopologyConfig&) = default;
};

struct ClusterConfig {
  Backend backend = Backend::kCpu;
  int ranks = 1;          ///< number of devices in the job
  int ranks_per_gpu = 1;  ///< cuda: ranks of a node that share a GPU, in their order
  /// 10^12 operations per second that a GPU, or with kCpu a rank, can do at most in the run's
  /// precision. Unset: the utilisation of the devices is not known.
  std::optional<double> peak_tflops = {};
  /// Filled by the loader: one node if the file names none. The devices add up to `ranks`.
  std::vector<ClusterNode> nodes = {};
  ProcessesPer processes = ProcessesPer::kNode;
  std::string join = "";  ///< HOST:PORT where process 0 listens; "" = not set here
  double join_timeout_s = 60.0;
  double wait_for_spare_s = 30.0;  ///< after a loss, if the job goes on
  bool elastic = false;            ///< then with smaller dp, if no process comes
  double slow_factor = 2.0;        ///< of its peers' time: then a rank is named; 0: none is
  int slow_steps = 20;             ///< in a row
  bool replace_slow = false;       ///< by a spare
  double heartbeat_ms = 250.0;
  double suspect_after_s = 1.0;   ///< more than two heartbeats
  double dead_after_s = 4.0;      ///< more than suspect_after_s
  double stuck_after_s = 5.0;     ///< one handler of an actor
  double pass_timeout_s = 300.0;  ///< one pass on a device
  double stall_after_s = 10.0;    ///< no actor of the job makes progress
  ClusterTls tls = ClusterTls::kAuto;
  std::string tls_ca = "";  ///< PEM files; all three or none
  std::string tls_certificate = "";
  std::string tls_key = "";
  TopologyConfig topology = {};
  friend bool operator==(const ClusterConfig&, const ClusterConfig&) = default;
};

/// Returns the GPU of its node that a rank of backend "cuda" computes on, counted from 0 as the
/// driver shows them to the rank's process.
int GpuOf(const ClusterConfig& cluster, int rank);
/// Returns the number of GPUs that the node with the most ranks needs.
int GpusNeeded(const ClusterConfig& cluster);
/// Returns the reason why the ranks of one process cannot compute on `found` GPUs, or "": "expected
/// 2 GPUs for ranks 0-1 with at most 1 on each, found 1 (...)".
std::string MissingGpus(const ClusterConfig& cluster, const std::vector<int>& ranks, int found);

/// The parts of a message between processes that are verified.
enum class TransportVerify { kOff, kHeader, kPayload };

/// The transport of tensors over TCP between processes that do not share memory.
enum class TransportTcp {
  kAuto,    ///< kProven, unless ucx_tls names TCP
  kProven,  ///< connections that have proven the run key
  kUcx      ///< UCX, which listens on a port
};

struct TransportConfig {
  TransportTcp tcp = TransportTcp::kAuto;
  TransportVerify verify = TransportVerify::kHeader;
  std::string ucx_tls = "auto";  ///< "auto", or a value of UCX_TLS
  std::string net_devices = "";  ///< interfaces; "" = the one of the node's address
  std::string port_range = "";   ///< "7500-7600"; "" = any
  std::int64_t spin_us = 0;
  friend bool operator==(const TransportConfig&, const TransportConfig&) = default;
};

/// Returns whether a list of UCX transports includes TCP.
bool NamesTcp(const std::string& ucx_tls);

struct CheckpointConfig {
  std::int64_t every = 0;         ///< steps between checkpoints; 0 = none by steps
  double every_minutes = 10.0;    ///< the same by time; 0 = none by time
  std::int64_t keep = 2;          ///< number of newest checkpoints to keep
  std::int64_t keep_every = 0;    ///< keep those of steps that it divides, too; 0 = none
  bool async = true;              ///< written while training goes on
  std::int64_t replicas = 0;      ///< mirrors of each process's state in the memory of others
  std::int64_t mirror_every = 1;  ///< steps between them

  /// Returns whether the run writes checkpoints before its end.
  bool periodic() const { return every > 0 || every_minutes > 0; }
  friend bool operator==(const CheckpointConfig&, const CheckpointConfig&) = default;
};

/// The field of a sample that an encoder reads, and the word in the text that its rows replace.
struct InputConfig {
  std::string field = "image";
  std::string placeholder = "<image>";
  friend bool operator==(const InputConfig&, const InputConfig&) = default;
};

/// Which replicas hold the moments of a parameter, and its master where it has one.
enum class OptimizerShard {
  kNone,  ///< all
  kData   ///< one of each optimizer instance: the data-parallel replicas divide them (ZeRO-1)
};

/// Values of one module or projector that override [optimizer].
struct OptimizerOverride {
  std::optional<double> learning_rate = {};
  std::optional<double> min_learning_rate = {};
  std::optional<double> weight_decay = {};
  std::optional<OptimizerShard> shard = {};    ///< of a module only, not of a projector
  std::optional<std::int64_t> instances = {};  ///< likewise
  friend bool operator==(const OptimizerOverride&, const OptimizerOverride&) = default;
};

/// The part of a colocated encoder that leaves its devices while the language model computes.
enum class Offload { kNone, kParameters, kState };

/// Adapters of low rank for linear layers of a module, whose weights do not change: a layer adds
/// strength / rank * B A x to its output. (LoRA, arXiv:2106.09685)
struct LoraConfig {
  std::int64_t rank = 64;
  std::optional<double> alpha = {};  ///< unset: twice the rank
  double dropout = 0.0;              ///< share of A's inputs that a training step drops
  LinearRoles linears = {LinearRole::kQuery, LinearRole::kKey, LinearRole::kValue,
                         LinearRole::kOutput};

  double strength() const { return alpha.value_or(2.0 * static_cast<double>(rank)); }
  double scale() const { return strength() / static_cast<double>(rank); }
  friend bool operator==(const LoraConfig&, const LoraConfig&) = default;
};

/// The tokens over which the load of experts is balanced.
enum class Balance {
  kSample,     ///< those of each sample: the same in every layout
  kMicrobatch  ///< those of a microbatch, of all replicas that run in lock step
};

/// The auxiliary losses of a module with experts (docs/parallelism.md).
struct MoeConfig {
  Balance balance = Balance::kSample;
  double balance_coefficient = 1e-3;
  double z_coefficient = 0.0;
  friend bool operator==(const MoeConfig&, const MoeConfig&) = default;
};

/// Layers of a module, by their numbers.
struct LayerChoice {
  bool automatic = false;                 ///< "auto": a rule chooses
  std::vector<std::int64_t> layers = {};  ///< otherwise these
  bool none() const { return !automatic && layers.empty(); }
  friend bool operator==(const LayerChoice&, const LayerChoice&) = default;
};

struct ModuleConfig {
  std::string name;
  Model model = DefaultModel();  ///< its kind, and the keys that only this kind has
  std::vector<int> ranks = {};   ///< empty when inline
  Layout layout = {};
  AxisOrder axis_order = kDefaultAxisOrder;
  std::optional<std::string> inline_in = {};        ///< the module in whose first stage it runs
  std::vector<std::int64_t> layers_per_stage = {};  ///< empty = "balanced"
  std::optional<InputConfig> input = {};
  std::optional<std::string> weights = {};  ///< "hf:DIR"; unset: random
  bool frozen = false;
  std::optional<LoraConfig> lora = {};  ///< only its adapters train
  MoeConfig moe = {};
  Recompute recompute = {};
  LayerChoice offload_activations = {};
  Offload offload = Offload::kNone;  ///< kState: also gradients and moments
  /// Gradients that each replica of the language model still owes when the offloaded part comes
  /// back. Unset: half the stages of its pipeline.
  std::optional<std::int64_t> offload_ahead = {};
  bool offload_results = false;  ///< rows of a window wait in host memory
  OptimizerOverride optimizer = {};
  int chunks = 1;  ///< pipeline stages on each rank; filled by SetChunks

  /// Number of pipeline stages. Stage s is on the ranks with pp = s % layout.pp. With several
  /// chunks these are virtual stages.
  int num_stages() const { return layout.pp * chunks; }
  /// Returns whether the parameters of its kind stay as they are.
  bool keeps_parameters() const { return frozen || lora.has_value(); }
  /// Returns whether the first and the last stage each have a copy of the embedding.
  bool head_tied_across_stages() const { return model->ties_embedding() && num_stages() > 1; }
  /// Returns the keys of a kind. Throws std::bad_cast if the module is of another kind.
  template <class Config>
  Config& As() {
    return dynamic_cast<Config&>(*model);
  }
  template <class Config>
  const Config& As() const {
    return dynamic_cast<const Config&>(*model);
  }
  friend bool operator==(const ModuleConfig&, const ModuleConfig&) = default;
};

enum class ProjectorEnd { kFrom, kTo };

struct ProjectorConfig {
  ProjectorKind kind = ProjectorKind::kMlp2;
  std::int64_t hidden = 0;  ///< width between the two linears; 0 where there is one
  ProjectorEnd on = ProjectorEnd::kFrom;
  bool frozen = false;
  std::optional<std::string> weights = {};  ///< "hf:DIR"; unset: random
  OptimizerOverride optimizer = {};         ///< over that of the module on whose devices it runs
  friend bool operator==(const ProjectorConfig&, const ProjectorConfig&) = default;
};

struct EdgeConfig {
  std::string from;
  std::string to;
  std::optional<ProjectorConfig> through = {};  ///< none: the hidden sizes must be equal
  int credits = 4;
  friend bool operator==(const EdgeConfig&, const EdgeConfig&) = default;
};

/// The rule by which a stage chooses its next pass.
enum class ScheduleKind { k1F1B, kGpipe, kInterleaved, kZbH1, kCsv };
/// In the order of ScheduleKind.
inline const std::vector<std::string> kScheduleWords = {"1f1b", "gpipe", "interleaved", "zb-h1",
                                                        "csv"};
const std::string& ToString(ScheduleKind kind);
/// Returns the kind of that word, if there is one.
std::optional<ScheduleKind> ScheduleKindOf(std::string_view word);

/// How ranks along cp get the keys and values of each other's tokens.
enum class ContextExchange {
  kRing,   ///< one part after the other, from neighbour to neighbour, while they compute
  kGather  ///< all at once
};

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::k1F1B;
  std::int64_t chunks = 0;            ///< interleaved, csv: stages per rank; 0 = 2 and 1
  std::string file = "";              ///< csv: path of the orders, treated like data.train
  std::string file_text = "";         ///< contents of `file`; filled by the loader
  std::int64_t micro_batch_size = 1;  ///< samples per language-model replica and microbatch
  std::int64_t microbatches = 1;      ///< per step
  std::int64_t window = 0;            ///< colocated: microbatches per encoder pass; 0 = "step"
  ContextExchange context_exchange = ContextExchange::kRing;
  friend bool operator==(const ScheduleConfig&, const ScheduleConfig&) = default;
};

/// The course of the learning rate after the warm-up.
enum class RateSchedule { kCosine, kLinear, kConstant };

struct OptimizerConfig {
  std::string kind = "adamw";
  double learning_rate = 1e-3;
  double min_learning_rate = 0.0;
  std::int64_t warmup_steps = 0;
  std::optional<double> warmup_ratio = {};  ///< of the run's steps, in place of `warmup_steps`
  bool warmup_from_zero = false;  ///< step i of a warm-up of n has the factor i/n, else (i + 1)/n
  RateSchedule schedule = RateSchedule::kCosine;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  /// Parameters with one of these traits do not decay.
  Traits no_decay = {Trait::kBias, Trait::kNorm, Trait::kClassEmbedding};
  double clip_norm = 1.0;  ///< 0 = no clipping
  OptimizerShard shard = OptimizerShard::kNone;
  /// With kData: groups of replicas that each hold one full set of the state.
  std::int64_t instances = 1;
  friend bool operator==(const OptimizerConfig&, const OptimizerConfig&) = default;
};

/// The rows that the samples of a step have in common.
enum class GroupBy {
  kNone,
  kModalityLength  ///< the same fields; ordered by length, so that a microbatch pads little
};

/// The places of a step's samples in its microbatches and replicas.
enum class DataOrder {
  kRandom,   ///< as they are drawn
  kBalanced  ///< equal work, and an order in which stages wait little (plan/step_order.hpp)
};

/// What happens with rows and files that cannot be used.
enum class OnError {
  kStop,       ///< the run does not start, or ends
  kSkip,       ///< another row takes its place
  kSubstitute  ///< zeros take the place of a bad file; a row with another fault is skipped
};

/// A part of the training samples.
struct DataSource {
  std::string path;                      ///< from the working directory; may stand for many files
  std::string format = "auto";           ///< as DataConfig::format
  std::optional<double> weight = {};     ///< of samples; unset: its number of rows
  std::optional<OnError> on_error = {};  ///< unset: as DataConfig::on_error
  std::optional<std::int64_t> skip_limit = {};  ///< of this source alone; unset: the common one
  friend bool operator==(const DataSource&, const DataSource&) = default;
};

struct DataConfig {
  std::string format = "auto";
  std::string train;                      ///< path from the working directory
  std::vector<DataSource> sources;        ///< in place of `train`
  std::int64_t shuffle_shards = 8;        ///< neighbouring files of a source whose rows are mixed
  std::string cache = "~/.cache/troupe";  ///< folder of indexes
  std::int64_t cache_gib = 20;
  std::int64_t workers = 4;          ///< threads of a process that prepare samples
  std::int64_t prefetch = 4;         ///< units of a replica whose samples are prepared ahead
  std::int64_t prefetch_mib = 1024;  ///< most memory of a process for prepared samples
  /// Where process 0 lets feed machines connect, "HOST:PORT"; empty: nowhere.
  std::string feed_address;
  std::string held_out;             ///< empty: no evaluation
  std::string tokenizer = "bytes";  ///< or "sentencepiece:FILE" or "hf:DIR"
  std::string prompt = "auto";  ///< a word of data/text/prompt_table.hpp; "auto": by the tokenizer
  OnError on_error = OnError::kStop;
  std::int64_t skip_limit = 100;  ///< maximum number of rows and files left out or replaced
  GroupBy group_by = GroupBy::kNone;
  DataOrder order = DataOrder::kRandom;
  bool packing = false;  ///< samples share rows without padding: a "sample" of a batch is a pack
  std::int64_t pack_window = 4096;  ///< samples that are packed together

  /// Whether there is anything to train on.
  bool has_train() const { return !train.empty() || !sources.empty(); }
  /// The paths of `sources`, or else of `train`; and the same as one text.
  std::vector<std::string> train_paths() const;
  std::string train_name() const;
  friend bool operator==(const DataConfig&, const DataConfig&) = default;
};

/// The beginning of a tokenizer that names the file of a model.
inline constexpr std::string_view kSentencePiece = "sentencepiece:";
/// Returns the file that `tokenizer` names, "" if it names none.
std::string SentencePieceFile(std::string_view tokenizer);

/// The beginning of `weights` or `tokenizer` that names a Hugging Face folder.
inline constexpr std::string_view kHuggingFace = "hf:";
/// Returns the folder that `value` names, "" if it names none.
std::string HuggingFaceFolder(std::string_view value);
/// The beginning of `weights` that names a run.
inline constexpr std::string_view kRunWeights = "run:";
/// Returns the directory of the run, or of its checkpoint, that `weights` names, "" if it names none.
std::string WeightsRun(std::string_view weights);

/// A whole model to start from. It stands for `weights` of the modules and projectors that state
/// none.
struct WholeModelConfig {
  std::optional<std::string> from = {};  ///< "hf:DIR"
  friend bool operator==(const WholeModelConfig&, const WholeModelConfig&) = default;
};

struct TraceConfig {
  bool messages = true;
  std::int64_t buffer_mib = 16;  ///< of each process
  friend bool operator==(const TraceConfig&, const TraceConfig&) = default;
};

struct LogConfig {
  bool tensorboard = false;  ///< write TensorBoard's event files, too
  friend bool operator==(const LogConfig&, const LogConfig&) = default;
};

struct Config {
  RunConfig run;
  ClusterConfig cluster;
  TransportConfig transport;
  WholeModelConfig model;
  std::vector<ModuleConfig> modules;  ///< in the order of the file
  std::vector<EdgeConfig> edges;
  ScheduleConfig schedule;
  OptimizerConfig optimizer;
  DataConfig data;
  TraceConfig trace;
  CheckpointConfig checkpoint;
  LogConfig log;

  const ModuleConfig* Find(const std::string& module) const;
  /// Returns the edge from one module to another; null if there is none.
  const EdgeConfig* FindEdge(const std::string& from, const std::string& to) const;
  /// Returns the module whose data parallelism defines the microbatch: the first that feeds no
  /// other. If there is none: null, or throws LayoutError.
  const ModuleConfig* FindSink() const;
  const ModuleConfig& Sink() const;
  /// Returns the number of samples in one microbatch of the whole job: micro_batch_size * dp(sink).
  std::int64_t samples_per_microbatch() const;
  /// Returns the most samples in the place of one: more than 1 with data.packing.
  std::int64_t most_in_pack() const;
  std::int64_t global_batch() const { return samples_per_microbatch() * schedule.microbatches; }
  friend bool operator==(const Config&, const Config&) = default;
};

/// Makes the sources of projectors of kind kPixelShuffle join their rows, and the others not.
void JoinRows(Config& config);

/// Sets `chunks` of every module from the schedule. Only the sink (Config::Sink) has virtual
/// stages: it is the deep module, and the modules that feed it follow it.
void SetChunks(Config& config);

/// Returns the grid of a module; the grid of its host if it is inline. Throws LayoutError.
Grid GridOf(const Config& config, const ModuleConfig& module);

/// Returns kInline if the source runs inside the destination, else PlacementOf.
Placement PlacementOfEdge(const Config& config, const EdgeConfig& edge);

}  // namespace troupe
