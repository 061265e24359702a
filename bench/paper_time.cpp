#include "bench/paper_time.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kinds/llama.hpp"
#include "kinds/siglip.hpp"
#include "layout/stage_graph.hpp"
#include "plan/cost/rank_cost.hpp"
#include "plan/layer_split.hpp"
#include "schedule/simulate.hpp"

namespace troupe::bench {
namespace {

// Data sheet of an H100 SXM and of its nodes.
constexpr double kPeakFlops = 989e12;  // bf16, dense
constexpr double kMemoryBytes = 3.35e12;
constexpr double kLinkBytes = 450e9;    // of a GPU inside a node, in one direction
constexpr double kNetworkBytes = 50e9;  // of a GPU between nodes, in one direction
constexpr int kNode = 8;

constexpr double kElementBytes = 2.0;  // bf16: rows, gradients and parameters
constexpr double kUpdateBytes = 28.0;  // of AdamW for a parameter: seven words of float32
constexpr const char* kEncoder = "encoder";

/// Assumed: images of 224 pixels, cut into 256 patches of 14.
constexpr std::int64_t kImage = 224;
constexpr std::int64_t kPatch = 14;

OperationRates RatesOf(double efficiency, const PaperConstants& constants) {
  const double flop_s = 1.0 / (kPeakFlops * efficiency);
  return {.linear_flop_s = flop_s,
          .linear_element_s = 2.0 * constants.linear_size * flop_s,
          .attention_flop_s = 1.0 / (kPeakFlops * constants.attention_efficiency),
          .element_s = constants.element_traffic * kElementBytes / kMemoryBytes};
}

LlamaConfig LanguageOf(const PaperJob& job) {
  const LanguageSize& size = job.language_size;
  LlamaConfig llama;
  llama.vocab = size.vocab;
  llama.hidden = size.hidden;
  llama.layers = size.layers;
  llama.heads = size.heads;
  llama.kv_heads = size.kv_heads;
  llama.mlp_hidden = size.mlp_hidden;
  llama.context = job.tokens;
  return llama;
}

SiglipConfig EncoderOf(const PaperJob& job) {
  constexpr std::int64_t kHead = 64;
  SiglipConfig encoder;
  encoder.image_size = kImage;
  encoder.patch_size = kPatch;
  encoder.hidden = job.encoder_size.width;
  encoder.layers = job.encoder_size.layers;
  encoder.heads = std::max<std::int64_t>(1, encoder.hidden / kHead);
  encoder.mlp_hidden = 4 * encoder.hidden;
  return encoder;
}

std::int64_t Ns(double seconds) { return static_cast<std::int64_t>(std::llround(seconds * 1e9)); }

/// The parameters of the largest stage on one rank.
double LanguageParameters(const PaperJob& job) {
  const LanguageSize& size = job.language_size;
  double most = 0.0;
  for (std::size_t stage = 0; stage < job.split.size(); ++stage) {
    const double tables = (stage == 0 ? 1.0 : 0.0) + (stage + 1 == job.split.size() ? 1.0 : 0.0);
    most = std::max(most, static_cast<double>(job.split[stage]) * size.layer_parameters() +
                              tables * size.head_parameters());
  }
  return most / job.language.tp;
}

}  // namespace

const std::vector<NamedConstant>& ConstantNames() {
  using C = PaperConstants;
  static const std::vector<NamedConstant> kNames = {
      {"linear_efficiency", &C::linear_efficiency},
      {"linear_size", &C::linear_size},
      {"attention_efficiency", &C::attention_efficiency},
      {"element_traffic", &C::element_traffic},
      {"tensor_exposed", &C::tensor_exposed},
      {"context_exposed", &C::context_exposed},
      {"gradients_exposed", &C::gradients_exposed},
      {"slow", &C::slow},
      {"encoder_efficiency", &C::encoder_efficiency},
      {"rails", &C::rails},
      {"reserve_gb", &C::reserve_gb}};
  return kNames;
}

PaperModel::PaperModel(const PaperConstants& constants) : constants_(constants) {}

DeviceModel PaperModel::DeviceOf(Stack stack) const {
  DeviceModel device;
  device.name = "H100 SXM";
  const OperationRates language = RatesOf(constants_.linear_efficiency, constants_);
  const OperationRates encoder = RatesOf(constants_.encoder_efficiency, constants_);
  device.rates = {.forward = language, .backward = language};
  device.modules[kEncoder].rates = {.forward = encoder, .backward = encoder};
  device.update_parameter_s = kUpdateBytes / kMemoryBytes;
  device.topology = {.devices_per_node = kNode,
                     .inside = {.bytes_per_s = kLinkBytes},
                     .between = {.bytes_per_s = kNetworkBytes},
                     .rails = constants_.rails};
  device.exposed = {.tensor = stack == Stack::kFast ? 0.0 : constants_.tensor_exposed,
                    .context = constants_.context_exposed,
                    .gradients = constants_.gradients_exposed};
  return device;
}

PaperModel::Seconds PaperModel::LanguagePass(const PaperJob& job, const StagePlace& place) const {
  const DeviceModel device = DeviceOf(*job.stack);
  RankCost rank(device, device.rates,
                {.layout = job.language,
                 .cp = job.language.cp,
                 .weight_gradient = true,
                 .input_gradient = true,
                 .element_bytes = kElementBytes,
                 .ring = false});
  const StepShape shape{.samples = 1, .tokens = job.tokens, .labels = job.tokens};
  LanguageOf(job).ListWork(place, shape, "language", rank);
  const double factor = *job.stack == Stack::kSlow ? constants_.slow : 1.0;
  return {factor * rank.cost().forward.total(), factor * rank.cost().backward_s()};
}

PaperModel::Seconds PaperModel::EncoderPass(const PaperJob& job) const {
  const DeviceModel device = DeviceOf(*job.stack);
  const bool trains = *job.regime == Regime::kA;
  // In H every rank along cp computes all images of a sample.
  RankCost rank(device, device.RatesOf(kEncoder),
                {.layout = job.encoder,
                 .cp = job.mode == Mode::kHomogeneous ? 1 : job.encoder.cp,
                 .weight_gradient = trains,
                 .element_bytes = kElementBytes});
  const SiglipConfig encoder = EncoderOf(job);
  const auto patches = static_cast<double>(encoder.num_patches());
  const double images = std::ceil(job.encoder_tokens() / patches);
  if (images == 0.0) return {};
  StepShape shape;
  shape.lengths[kEncoder] = static_cast<std::int64_t>(images);
  encoder.ListWork({.layers = {0, encoder.layers}, .first = true, .last = true}, shape, kEncoder,
                   rank);
  const double share = job.encoder_tokens() / (images * patches) / job.encoder.pp;
  return {share * rank.cost().forward.total(), share * rank.cost().backward_s()};
}

std::vector<std::int64_t> PaperModel::BalancedSplit(const PaperJob& job) const {
  const std::int64_t layers = job.language_size.layers;
  if (job.language.pp == 1) return {layers};
  const Seconds layer = LanguagePass(job, {.layers = {0, 1}});
  const Seconds head = LanguagePass(job, {.layers = {0, 0}, .last = true});
  return BalanceLayers(layers, job.language.pp, 0.0, head.total() / layer.total());
}

/// H and C: a chain of stages, the first with the encoder of H. NC: the island before that chain; its
/// replicas take a sample each, of one microbatch or of several.
double PaperModel::PassesOf(const PaperJob& job) const {
  const auto stages = static_cast<int>(job.split.size());
  const bool island = job.mode == Mode::kSeparate;
  std::vector<Seconds> passes;
  if (island) {
    const Seconds sample = EncoderPass(job);
    const double each = std::max(1.0, static_cast<double>(job.language.dp) / job.encoder.dp);
    passes.push_back({each * sample.forward, each * sample.backward});
  }
  std::int64_t begin = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const std::int64_t end = begin + job.split[static_cast<std::size_t>(stage)];
    Seconds pass = LanguagePass(
        job, {.layers = {begin, end}, .first = stage == 0, .last = stage + 1 == stages});
    if (stage == 0 && job.mode == Mode::kHomogeneous) {
      const Seconds encoder = EncoderPass(job);
      pass.forward += encoder.forward;
      pass.backward += encoder.backward;
    }
    passes.push_back(pass);
    begin = end;
  }
  std::vector<ModuleNode> modules;
  std::vector<ModuleEdge> edges;
  if (island) {
    modules.push_back({kEncoder, 1});
    edges.push_back({0, 1, job.microbatches()});
  }
  modules.push_back({"language", stages});
  const StageGraph graph(modules, edges);
  Schedule schedule = OneForwardOneBackward(LimitsOf(graph));
  if (island) {
    schedule.windows.assign(passes.size(), 1);
    schedule.windows.front() = std::max(1, job.encoder.dp / job.language.dp);
    schedule.runs_backward.assign(passes.size(), true);
    schedule.runs_backward.front() = *job.regime == Regime::kA;
  }
  const auto duration = [&](int stage, const Pass& pass) {
    const Seconds& of = passes[static_cast<std::size_t>(stage)];
    return Ns(pass.kind == PassKind::kForward ? of.forward : of.backward);
  };
  return 1e-9 *
         static_cast<double>(Simulate(graph, schedule, duration, job.microbatches()).makespan_ns);
}

double PaperModel::ReduceTime(double parameters, int replicas, int stride) const {
  DeviceModel device = DeviceOf(Stack::kMid);
  device.topology.rails = 0.0;
  const LinkRate link = device.topology.LinkOf(replicas, stride);
  // Gradients are summed and cut, then parameters are gathered.
  return device.exposed.gradients * 2.0 * RingTime(link, kElementBytes * parameters, replicas);
}

PaperTime PaperModel::TimeOf(const PaperJob& job) const {
  PaperTime time;
  time.passes_s = PassesOf(job);
  const Layout& language = job.language;
  const double parameters = LanguageParameters(job);
  time.reduce_s = ReduceTime(parameters, language.num_holders(), language.tp);
  if (job.mode == Mode::kColocated) {
    time.encoder_s = EncoderPass(job).total() * job.samples / job.encoder.dp +
                     ReduceTime(job.encoder_size.parameters() / job.encoder.tp,
                                job.encoder.num_holders(), job.encoder.tp);
  }
  if (!job.passes_only) {
    time.update_s = DeviceOf(Stack::kMid).update_parameter_s * parameters / language.num_holders();
  }
  return time;
}

}  // namespace troupe::bench
