#include "modules/torch/torch_stage.hpp"

#include <ATen/core/grad_mode.h>
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>
#include <utility>

#include "modules/torch/encoder_body.hpp"
#include "modules/torch/late_results.hpp"
#include "modules/torch/short_errors.hpp"
#include "modules/torch/tensors.hpp"
#include "plan/optimizer_settings.hpp"
#include "plan/pass_memory.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

std::unique_ptr<StageBody> MakeBody(const Config& config, const ShardAddress& shard,
                                    const ParameterStore& store, const BodyGroups& groups) {
  const ModuleConfig& module = FindModule(config, shard.module);
  const BodyMaker make = TorchKindOf(module).make_body;
  return (make ? make : MakeEncoderBody)(config, module, shard.pp, store, groups);
}

std::unique_ptr<CopyLane> MakeLane(const at::Device& device) {
  return device.is_cuda() ? MakeDeviceCopyLane(device.index()) : MakeHostCopyLane();
}

OffloadedState MakeOffloaded(const std::string& who, Offload what, const ParameterStore& store) {
  const at::Device device = store.numerics().device;
  return {who, what, store.Flats(), what == Offload::kNone ? nullptr : MakeLane(device)};
}

/// Null if no layer of the stage keeps activations that leave the device.
std::unique_ptr<ActivationOffload> MakeActivationOffload(const Config& config,
                                                         const ShardAddress& shard,
                                                         const at::Device& device) {
  if (EstimateUnit(config, shard.module, shard.pp).away == 0) return nullptr;
  return std::make_unique<ActivationOffload>(MakeLane(device), MakeLane(device), device.is_cpu());
}

/// The state that is read for tensors of a kind, and written when they are set. With mixed numerics
/// the parameters are masters, which the update uses, and their rounded copies.
std::vector<StateUse> UsesOf(TensorKind kind, const Numerics& numerics) {
  if (kind == TensorKind::kGradient) return {StateUse::kBackward};
  if (kind != TensorKind::kParameter) return {StateUse::kUpdate};
  if (numerics.mixed()) return {StateUse::kForward, StateUse::kUpdate};
  return {StateUse::kForward};
}

FlatLayout LayoutOf(const Config& config, const ShardAddress& shard) {
  const ModuleConfig& module = FindModule(config, shard.module);
  return {StageParameters(config, shard.module, shard.pp), shard, module.layout,
          ShardingsOf(config, module)};
}

bool SharesMemory(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && a.storage().data() == b.storage().data();
}

}  // namespace

TorchStage::TorchStage(std::shared_ptr<const Config> config, const ShardAddress& shard,
                       const Numerics& numerics, ShardGroups groups)
    : config_(std::move(config)),
      name_(ToString(shard)),
      tensor_communicator_(std::move(groups.tensor)),
      input_needs_gradient_(InputsWithGradients(*config_, shard.module, shard.pp)),
      runs_backward_(RunsBackward(*config_, shard.module, shard.pp)),
      numerics_(numerics),
      tensor_group_(c10::make_intrusive<TensorGroup>(*tensor_communicator_,
                                                     FindModule(*config_, shard.module).layout.sp)),
      context_group_(c10::make_intrusive<ContextGroup>(std::move(groups.context),
                                                       config_->schedule.context_exchange)),
      expert_group_(c10::make_intrusive<ExpertGroup>(std::move(groups.expert),
                                                     std::move(groups.balance),
                                                     FindModule(*config_, shard.module).layout)),
      store_(LayoutOf(*config_, shard), config_->run.seed, numerics, std::move(groups)),
      offloaded_(MakeOffloaded(name_, FindModule(*config_, shard.module).offload, store_)),
      activations_(MakeActivationOffload(*config_, shard, numerics.device)),
      body_(MakeBody(*config_, shard, store_, {tensor_group_, context_group_, expert_group_})) {
  const ModuleConfig& module = FindModule(*config_, shard.module);
  has_loss_ = !module.model->emits_rows() && shard.pp + 1 == module.num_stages();
}

void TorchStage::Offload(StateMovedCallback done) {
  if (!offloaded_.leaves()) return StageProgram::Offload(std::move(done));
  WithShortErrors(name_, [&] {
    store_.exchange().WaitForParameters();
    offloaded_.Leave(std::move(done));
  });
}

void TorchStage::Restore(bool moments, StateMovedCallback done) {
  if (!offloaded_.leaves()) return StageProgram::Restore(moments, std::move(done));
  WithShortErrors(name_, [&] { offloaded_.Return(moments, std::move(done)); });
}

ForwardResult TorchStage::Forward(const ForwardPass& pass) {
  offloaded_.Require(StateUse::kForward, "forward");
  return WithShortErrors(name_, [&] { return RunForward(pass); });
}

BackwardResult TorchStage::Backward(const BackwardPass& pass) {
  offloaded_.Require(StateUse::kBackward, "backward");
  offloaded_.MarkChanged(StateUse::kBackward);
  return WithShortErrors(name_, [&] { return RunBackward(pass); });
}

at::Tensor TorchStage::Take(const Buffer& buffer, std::size_t num_dimensions,
                            const std::string& what) const {
  at::Tensor tensor = AsTensor(buffer, DTypeOf(numerics_.type), num_dimensions, what);
  if (tensor.device() == numerics_.device) return tensor;
  throw std::invalid_argument(what + ": expected a tensor on " + numerics_.device.str() +
                              ", got one on " + tensor.device().str());
}

std::vector<at::Tensor> TorchStage::TakeInputs(const std::vector<Buffer>& buffers,
                                               bool records) const {
  if (buffers.size() != input_needs_gradient_.size()) {
    throw std::invalid_argument(name_ + ": expected " +
                                std::to_string(input_needs_gradient_.size()) + " inputs, got " +
                                std::to_string(buffers.size()));
  }
  std::vector<at::Tensor> inputs;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::size_t num_dimensions = buffers[i].shape().size() == 3 ? 3 : 2;
    at::Tensor input = Take(buffers[i], num_dimensions, name_ + ": input " + std::to_string(i));
    if (records && activations_) input = input.clone();  // so that its memory can leave
    inputs.push_back(input.requires_grad_(records && input_needs_gradient_[i]));
  }
  return inputs;
}

ForwardResult TorchStage::RunForward(const ForwardPass& pass) {
  const bool records = pass.train && runs_backward_;
  if (records && flights_.contains(pass.unit)) {
    throw std::logic_error(name_ + ": unit " + std::to_string(pass.unit) + " is in flight already");
  }
  store_.exchange().BeginForward();
  // Set here, in every pass: grad mode belongs to the thread and survives no hop between threads.
  const c10::AutoGradMode mode(records);
  Flight flight{
      .inputs = TakeInputs(pass.inputs, records), .outputs = {}, .loss_scale = pass.loss_scale};
  const ActivationOffload::Scope scope(activations_.get(), pass.unit);
  if (activations_) activations_->Expect(pass.next_backward);
  const BodyResult result = body_->Forward(flight.inputs, pass);
  ForwardResult forward{.outputs = {}, .loss = result.loss};
  std::vector<at::Tensor> leaving;
  for (const at::Tensor& output : result.outputs) {
    flight.outputs.push_back(output.requires_grad() ? torch::autograd::impl::gradient_edge(output)
                                                    : torch::autograd::Edge{});
    if (has_loss_) continue;
    leaving.push_back(output.detach());
    forward.outputs.push_back(AsBuffer(output));
  }
  if (!numerics_.portable) leaving.clear();  // the Device actor checks buffers in host memory
  forward.finish = FinishForward(leaving, result.late_loss);
  if (records) flights_.emplace(pass.unit, std::move(flight));
  return forward;
}

torch::autograd::variable_list TorchStage::RootGradients(const Flight& flight,
                                                         const BackwardPass& pass) const {
  if (has_loss_) return {at::full({}, flight.loss_scale, numerics_.state_options())};
  if (pass.gradients.size() != flight.outputs.size()) {
    throw std::invalid_argument(name_ + ": expected " + std::to_string(flight.outputs.size()) +
                                " gradients, got " + std::to_string(pass.gradients.size()));
  }
  torch::autograd::variable_list gradients;
  for (const Buffer& buffer : pass.gradients) {
    if (!buffer.defined()) {
      gradients.emplace_back();
      continue;
    }
    gradients.push_back(Take(buffer, buffer.shape().size(),
                             name_ + ": gradient " + std::to_string(gradients.size())));
  }
  return gradients;
}

BackwardResult TorchStage::RunBackward(const BackwardPass& pass) {
  const auto node = flights_.extract(pass.unit);
  if (node.empty()) {
    throw std::logic_error(name_ + ": backward of unit " + std::to_string(pass.unit) +
                           " without its forward");
  }
  const Flight& flight = node.mapped();
  const torch::autograd::variable_list all = RootGradients(flight, pass);
  torch::autograd::edge_list roots;
  torch::autograd::variable_list gradients;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!flight.outputs[i].is_valid() || !all[i].defined()) continue;
    roots.push_back(flight.outputs[i]);
    gradients.push_back(all[i]);
  }
  std::optional<DeferWeights> deferring;
  if (pass.split_weights) {
    deferring.emplace(weights_[pass.unit]);
    if (pass.last) last_unit_ = pass.unit;
  } else if (pass.last) {
    store_.exchange().BeginLastBackward();
  }
  if (activations_) activations_->BeginBackward(pass.unit, pass.next_backward);
  if (!roots.empty()) {
    torch::autograd::Engine::get_default_engine().execute(roots, gradients, /*keep_graph=*/false,
                                                          /*create_graph=*/false,
                                                          /*accumulate_grad=*/true, {});
  }
  if (activations_) activations_->Forget(pass.unit);
  return InputGradients(flight, gradients);
}

std::vector<ConcurrentWork> TorchStage::TakeConcurrent() {
  std::vector<ConcurrentWork> ended = store_.exchange().TakeConcurrent();
  if (activations_) {
    for (ConcurrentWork& work : activations_->TakeWork()) ended.push_back(std::move(work));
  }
  return ended;
}

BackwardResult TorchStage::InputGradients(const Flight& flight,
                                          const torch::autograd::variable_list& roots) const {
  BackwardResult result;
  std::vector<at::Tensor> leaving(flight.inputs.size());
  for (std::size_t i = 0; i < flight.inputs.size(); ++i) {
    if (!input_needs_gradient_[i]) {
      result.gradients.emplace_back();
      continue;
    }
    at::Tensor gradient = flight.inputs[i].grad();
    if (!gradient.defined()) gradient = at::zeros_like(flight.inputs[i]);
    // Where only views lie between output and input, this is still the sender's buffer, which the
    // transport may use again.
    for (const at::Tensor& root : roots) {
      if (SharesMemory(gradient, root)) gradient = gradient.clone();
    }
    result.gradients.push_back(AsBuffer(gradient));
    leaving[i] = gradient;
  }
  if (numerics_.portable) result.finish = FinishBackward(leaving);
  return result;
}

void TorchStage::BackwardWeights(std::int64_t unit) {
  offloaded_.Require(StateUse::kBackward, "weight gradients");
  offloaded_.MarkChanged(StateUse::kBackward);
  const auto node = weights_.extract(unit);
  if (node.empty()) {
    throw std::logic_error(name_ + ": weight gradients of unit " + std::to_string(unit) +
                           " without a backward that was split");
  }
  if (unit == last_unit_) store_.exchange().BeginLastBackward();
  const c10::AutoGradMode mode(false);
  WithShortErrors(name_, [&] {
    for (const auto& work : node.mapped()) work();
  });
}

void TorchStage::RequireNothingInFlight(const char* action) const {
  if (!weights_.empty()) {
    throw std::logic_error(name_ + ": " + action + " while unit " +
                           std::to_string(weights_.begin()->first) +
                           " awaits its weight gradients");
  }
  if (flights_.empty()) return;
  throw std::logic_error(name_ + ": " + action + " while unit " +
                         std::to_string(flights_.begin()->first) + " awaits its backward");
}

ReducedGradients TorchStage::ReduceGradients() {
  RequireNothingInFlight("gradient reduction");
  offloaded_.Require(StateUse::kBackward, "gradient reduction");
  offloaded_.MarkChanged(StateUse::kBackward);
  return store_.ReduceGradients();
}

void TorchStage::Update(const UpdateStep& step) {
  RequireNothingInFlight("optimizer step");
  for (const StateUse use : {StateUse::kForward, StateUse::kBackward, StateUse::kUpdate}) {
    offloaded_.Require(use, "optimizer step");
    offloaded_.MarkChanged(use);
  }
  store_.Update(*config_, step);
}

std::vector<TensorPiece> TorchStage::Tensors(TensorKind kind) const {
  for (const StateUse use : UsesOf(kind, numerics_)) offloaded_.Require(use, "look at its tensors");
  return store_.Pieces(kind);
}

void TorchStage::PrepareCopies(const ShardAddress* first) {
  WithShortErrors(name_, [&] {
    snapshots_ = MakeLane(numerics_.device);
    if (first != nullptr) store_.CopyFor(LayoutOf(*config_, *first));
    store_.PrepareCopies(*snapshots_);
  });
}

void TorchStage::CopyState(StateMovedCallback done) {
  for (const StateUse use : {StateUse::kForward, StateUse::kUpdate}) {
    offloaded_.Require(use, "snapshot");
  }
  WithShortErrors(name_, [&] {
    if (!snapshots_) snapshots_ = MakeLane(numerics_.device);
    store_.CopyStored(*snapshots_, offloaded_.leaves(), std::move(done));
  });
}

void TorchStage::SetTensors(TensorKind kind, const std::vector<TensorPiece>& pieces) {
  if (kind == TensorKind::kGradient) {
    throw std::invalid_argument(name_ + ": expected parameters or moments to set, got gradients");
  }
  RequireNothingInFlight("change of tensors");
  for (const StateUse use : UsesOf(kind, numerics_)) {
    offloaded_.Require(use, "change of tensors");
    offloaded_.MarkChanged(use);
  }
  store_.SetPieces(name_, kind, pieces);
}

}  // namespace troupe
