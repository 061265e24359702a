#include "modules/synthetic/synthetic_program.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <sys/prctl.h>
#include <thread>
#include <utility>

#include "layout/mix_bits.hpp"
#include "modules/tensor_pieces.hpp"
#include "plan/stage_parts.hpp"
#include "plan/unit_samples.hpp"

namespace troupe {
namespace {

/// Linux lets a sleep end up to 50 us late to save power; a stated duration must not grow by that.
void WakeOnTime() {
  thread_local const int done = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  static_cast<void>(done);  // where it is refused, sleeps are late and nothing else
}

void Spend(double milliseconds) {
  if (milliseconds > 0) {
    WakeOnTime();
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
  }
}

/// Values of samples begin again after so many, so that they stay small.
constexpr std::int64_t kPlaces = 997;

/// Element i of the pattern of input k; small integers, so that sums are exact.
double Pattern(std::size_t k, std::int64_t i) {
  return static_cast<double>(1 + (i * 7 + static_cast<std::int64_t>(k) * 3) % 5);
}

double Dot(const Buffer& x, std::size_t k) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < x.num_elements(); ++i) sum += x.as<double>()[i] * Pattern(k, i);
  return sum;
}

/// Dot with everything but the first input.
double Rest(const std::vector<Buffer>& inputs) {
  double sum = 0.0;
  for (std::size_t k = 1; k < inputs.size(); ++k) sum += Dot(inputs[k], k);
  return sum;
}

Buffer Scalar(double value) {
  Buffer buffer = Buffer::Allocate({1}, DType::kFloat64);
  *buffer.as<double>() = value;
  return buffer;
}

}  // namespace

SyntheticProgram::SyntheticProgram(ShardAddress shard, const SyntheticConfig& config,
                                   SyntheticShape shape, std::shared_ptr<Communicator> replicas)
    : shard_(std::move(shard)),
      config_(config),
      shape_(std::move(shape)),
      replicas_(std::move(replicas)),
      weight_(Scalar(2.0)),
      gradient_(Scalar(0.0)) {}

double SyntheticProgram::FactorOf(const Inputs& inputs) const {
  const std::int64_t samples = inputs.tokens.defined() ? inputs.tokens.num_elements() : 0;
  if (config_.time_sigma == 0.0 || samples == 0) return 1.0;
  double sum = 0.0;
  for (std::int64_t i = 0; i < samples; ++i) {
    sum += TimeFactor(shape_.seed, config_.time_sigma, inputs.tokens.as<std::int64_t>()[i]);
  }
  return sum / static_cast<double>(samples);
}

Buffer SyntheticProgram::SourceRows(const Inputs& inputs) const {
  const RowTable own = CutTable(inputs.table, shape_.cut, shape_.part);
  std::map<std::int64_t, std::int64_t> drawn;  // by number in the unit
  for (std::size_t i = 0; i < inputs.table.samples.size(); ++i) {
    const std::int64_t number = inputs.table.samples[i];
    drawn[number] = inputs.tokens.defined() ? inputs.tokens.as<std::int64_t>()[i] : number;
  }
  Buffer rows = Buffer::Allocate({own.num_rows(), config_.hidden}, DType::kFloat64);
  double* out = rows.as<double>();
  for (const RowRun& run : RunsOf(own)) {
    const std::int64_t sample = drawn.at(run.sample) % kPlaces;
    for (std::int64_t row = run.first; row < run.first + run.count; ++row) {
      for (std::int64_t h = 0; h < config_.hidden; ++h) {
        *out++ = static_cast<double>(1 + sample * 64 + row * 8 + h);
      }
    }
  }
  return rows;
}

ForwardResult SyntheticProgram::Forward(const ForwardPass& pass) {
  Flight flight{pass.inputs, pass.loss_scale, pass.data ? FactorOf(*pass.data) : 1.0};
  Spend(config_.forward_ms * flight.factor);
  if (flight.inputs.empty()) {
    if (!pass.data) throw std::invalid_argument("a source stage got no inputs");
    flight.inputs.push_back(SourceRows(*pass.data));
  }
  const double w = *weight_.as<double>();
  const Buffer& x = flight.inputs.front();
  const double rest = Rest(flight.inputs);
  ForwardResult result;
  if (shape_.links_out == 0) {
    result.loss.loss = w * (Dot(x, 0) + rest);
    result.loss.tokens = shape_.part == 0 ? 1 : 0;
  } else {
    Buffer y = Buffer::Allocate(x.shape(), DType::kFloat64);
    for (std::int64_t i = 0; i < x.num_elements(); ++i) {
      y.as<double>()[i] = w * x.as<double>()[i] + rest;
    }
    result.outputs.assign(shape_.links_out, y);
  }
  if (pass.train && !flights_.emplace(pass.unit, std::move(flight)).second) {
    throw std::logic_error("unit " + std::to_string(pass.unit) + " is in flight already");
  }
  return result;
}

BackwardResult SyntheticProgram::Backward(const BackwardPass& pass) {
  auto node = flights_.extract(pass.unit);
  if (node.empty()) throw std::logic_error("backward without forward");
  const Flight& flight = node.mapped();
  Spend(config_.backward_ms * flight.factor *
        (pass.split_weights ? 1.0 - config_.weight_share : 1.0));
  const double w = *weight_.as<double>();
  const Buffer& x = flight.inputs.front();
  const bool sink = shape_.links_out == 0;

  // The gradient of y (or, at a sink, of the loss with respect to w * x_0), branches summed.
  Buffer g = Buffer::Zeros(x.shape(), DType::kFloat64);
  double total = sink ? w * flight.scale : 0.0;  // the gradient of t
  double dot = sink ? (Dot(x, 0) + Rest(flight.inputs)) * flight.scale : 0.0;
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    double& gi = g.as<double>()[i];
    if (sink) gi = flight.scale * Pattern(0, i);
    for (const Buffer& gradient : pass.gradients) gi += gradient.as<double>()[i];
    if (!sink) {
      total += gi;
      dot += gi * x.as<double>()[i];
    }
    gi *= w;
  }
  if (pass.split_weights) {
    weights_.emplace(pass.unit, Weights{dot, flight.factor});
  } else if (shape_.trains) {
    *gradient_.as<double>() += dot;
  }

  BackwardResult result;
  for (std::size_t k = 0; k < shape_.in_carries_gradient.size(); ++k) {
    if (!shape_.in_carries_gradient[k]) {
      result.gradients.emplace_back();
    } else if (k == 0) {
      result.gradients.push_back(g);
    } else {
      Buffer gk = Buffer::Allocate(flight.inputs[k].shape(), DType::kFloat64);
      for (std::int64_t i = 0; i < gk.num_elements(); ++i) {
        gk.as<double>()[i] = total * Pattern(k, i);
      }
      result.gradients.push_back(gk);
    }
  }
  return result;
}

void SyntheticProgram::BackwardWeights(std::int64_t unit) {
  const auto node = weights_.extract(unit);
  if (node.empty()) throw std::logic_error("weight gradients without a backward that was split");
  Spend(config_.backward_ms * config_.weight_share * node.mapped().factor);
  if (shape_.trains) *gradient_.as<double>() += node.mapped().gradient;
}

ReducedGradients SyntheticProgram::ReduceGradients() {
  if (!weights_.empty()) throw std::logic_error("weight gradients of a unit are still to come");
  if (!shape_.trains) return {};
  if (replicas_) replicas_->AllReduce(gradient_.data(), 1, DType::kFloat64, ReduceOp::kSum);
  const double g = *gradient_.as<double>();
  return {Owns(shard_) ? g * g : 0.0};
}

void SyntheticProgram::Update(const UpdateStep& step) {
  if (!flights_.empty()) throw std::logic_error("a unit is still in flight at the update");
  // A step that keeps w near 2 whatever the gradient's size: only its sign and order matter here.
  double& g = *gradient_.as<double>();
  *weight_.as<double>() -= 1e-3 * step.schedule * (g > 0 ? 1 : g < 0 ? -1 : 0);
  g = 0.0;
}

std::vector<TensorPiece> SyntheticProgram::Tensors(TensorKind kind) const {
  if (kind != TensorKind::kParameter && (kind != TensorKind::kGradient || !shape_.trains))
    return {};
  return {{.name = ToString(StageId{shard_.module, shard_.pp}) + ".weight",
           .global_shape = {1},
           .offsets = {0},
           .value = kind == TensorKind::kParameter ? weight_ : gradient_,
           .owner = Owns(shard_)}};
}

std::vector<TensorPiece> SyntheticProgram::TensorsToCopy(TensorKind kind) const {
  std::vector<TensorPiece> pieces = copies_ ? Tensors(kind) : std::vector<TensorPiece>();
  for (TensorPiece& piece : pieces) piece.owner = true;  // of the shard that stores it
  return pieces;
}

void SyntheticProgram::SetTensors(TensorKind kind, const std::vector<TensorPiece>& pieces) {
  if (!flights_.empty()) {
    throw std::logic_error("tensors are set while a unit is still in flight");
  }
  OverwritePieces(ToString(shard_), Tensors(kind), pieces);
}

SyntheticSource::SyntheticSource(const Config& config) { TakeLayouts(config); }

void SyntheticSource::TakeLayouts(const Config& config) {
  config_ = config;
  order_ = std::make_unique<const BatchOrder>(config_);
}

SampleTimes SyntheticSource::TimesOf(std::int64_t sample) const {
  SampleTimes times;
  const JobPlan& plan = order_->step_order().plan();
  for (const StagePlan& stage : plan.stages()) {
    const ModuleConfig& module = *plan.ModuleOf(stage.module).config;
    // The shapes of other kinds run in virtual time, where samples are alike.
    const StatedTimes stated = module.model->stated_times().value_or(StatedTimes());
    const double factor = TimeFactor(TimeSeed(config_, module.name), stated.sample_sigma, sample);
    // A pass takes the mean of its samples, so each of them adds a share.
    const double share = factor * module.layout.dp /
                         static_cast<double>(plan.samples_per_microbatch()) / module.chunks;
    times.forward_ns.push_back(static_cast<std::int64_t>(stated.forward_ms * share * 1e6));
    times.backward_ns.push_back(static_cast<std::int64_t>(stated.backward_ms * share * 1e6));
  }
  return times;
}

/// Returns the rows that the first stage of a module gives to each sample: those of its first input.
static std::int64_t RowsOfSample(const Config& config, const std::string& module) {
  const auto incoming = IncomingEdges(config, module);
  if (!incoming.empty()) return RowsOfSample(config, incoming.front()->from);
  return config.Find(module)->model->rows_per_item();
}

std::shared_ptr<const Inputs> SyntheticSource::Assemble(const FeedUnit& unit,
                                                        const std::vector<Buffer>& /*samples*/) {
  const auto& [module, dp, round, index] = unit;
  const ModuleConfig& config = *config_.Find(module);
  auto inputs = std::make_shared<Inputs>();
  const UnitSamples held = SamplesOfUnit(config_, config, dp, round.microbatches, index);
  const std::int64_t first = held.first_microbatch * config_.samples_per_microbatch();
  const std::int64_t rows =
      config.model->computes() ? config.model->rows_per_item() : RowsOfSample(config_, module);
  std::vector<std::int64_t> drawn;
  for (const Interval& samples : held.samples) {
    for (auto sample = samples.begin; sample < samples.end; ++sample) {
      inputs->table.samples.push_back(sample);
      inputs->table.rows.push_back(rows);
      const std::int64_t place = unit.round.place;
      drawn.push_back(place + order_->SampleAt(round, first + sample,
                                               [&](std::int64_t i) { return TimesOf(place + i); }));
    }
  }
  inputs->tokens = Buffer::Allocate({std::ssize(drawn), 1}, DType::kInt64);
  std::ranges::copy(drawn, inputs->tokens.as<std::int64_t>());
  return inputs;
}

RoundCounts SyntheticSource::Count(const Round& round) {
  const std::int64_t samples = round.microbatches * config_.samples_per_microbatch();
  return {samples, samples, samples};
}

double TimeFactor(std::uint64_t seed, double sigma, std::int64_t sample) {
  if (sigma == 0.0) return 1.0;
  // The sum of twelve uniform numbers is nearly normal, with a deviation of 1.
  constexpr int kSummed = 12;
  double normal = -kSummed / 2.0;
  std::uint64_t state = MixBits(seed ^ MixBits(static_cast<std::uint64_t>(sample)));
  for (int i = 0; i < kSummed; ++i) {
    state = MixBits(state);
    normal += static_cast<double>(state >> 11) / 9007199254740992.0;  // 2^53
  }
  return std::round(std::exp(sigma * normal - sigma * sigma / 2.0) * 1000.0) / 1000.0;
}

std::uint64_t TimeSeed(const Config& config, const std::string& module) {
  std::uint64_t seed = MixBits(config.run.seed);
  for (const char letter : module) seed = MixBits(seed ^ static_cast<unsigned char>(letter));
  return seed;
}

SyntheticShape SyntheticShapeOf(const Config& config, const ShardAddress& shard) {
  const ModuleConfig& module = *config.Find(shard.module);
  const bool last = shard.pp == module.num_stages() - 1;
  return {.links_out = last ? OutgoingEdges(config, module.name).size() : 1,
          .trains = StageTrains(config, module.name, shard.pp),
          .in_carries_gradient = InputsWithGradients(config, module.name, shard.pp),
          .cut = module.model->CutOver(module.layout.cp),
          .part = shard.cp,
          .seed = TimeSeed(config, module.name)};
}

ProgramFactory MakeSyntheticPrograms(
    const Config& config,
    std::function<std::shared_ptr<Communicator>(const ShardAddress&)> replicas) {
  // Every device gets a copy of the factory, not of the configuration.
  const auto shared = std::make_shared<const Config>(config);
  return [shared, replicas](const ShardAddress& shard) -> std::unique_ptr<StageProgram> {
    const ModuleConfig& module = *shared->Find(shard.module);
    auto times = module.As<SyntheticConfig>();  // stated for the stages of a plain pipeline
    times.forward_ms /= module.chunks;
    times.backward_ms /= module.chunks;
    return std::make_unique<SyntheticProgram>(shard, times, SyntheticShapeOf(*shared, shard),
                                              replicas ? replicas(shard) : nullptr);
  };
}

}  // namespace troupe
