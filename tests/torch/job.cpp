#include "tests/torch/job.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <stdexcept>
#include <thread>

#include "modules/groups.hpp"
#include "modules/torch/compute.hpp"
#include "modules/torch/programs.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {

void RunThreads(const std::vector<std::function<void()>>& work) {
  std::vector<std::exception_ptr> errors(work.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < work.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        SetupComputeThread();
        work[i]();
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

Job::Job(const Config& config, bool split, bool portable) : config_(config), split_(split) {
  const ProgramFactory make = MakeTorchPrograms(
      config, std::make_shared<GroupTable>(config, std::make_shared<AbortSignal>()),
      TorchOptions{.portable = portable});
  AddShards([&make](int) { return make; });
}

Job::Job(const Config& config,
         const std::function<std::shared_ptr<GroupTable>(int rank)>& groups_of)
    : config_(config), split_(false) {
  AddShards([&](int rank) { return MakeTorchPrograms(config, groups_of(rank), TorchOptions{}); });
}

void Job::AddShards(const std::function<ProgramFactory(int rank)>& make) {
  for (const ModuleConfig& module : config_.modules) {
    if (module.inline_in) continue;
    for (const int rank : module.ranks) {
      const Coordinates at = GridOf(config_, module).CoordinatesOf(rank);
      const ShardAddress address{module.name, at.pp, at.dp, at.tp, at.cp, rank};
      shards_.push_back({address, make(rank)(address)});
    }
  }
}

std::vector<StageProgram*> Job::StageOf(const std::string& module, int pp, int dp) {
  std::vector<StageProgram*> programs;
  for (const Shard& shard : shards_) {
    const ShardAddress& at = shard.address;
    if (at.module == module && at.pp == pp && at.dp == dp) programs.push_back(shard.program.get());
  }
  return programs;
}

StageProgram& Job::Program(const std::string& module, int pp, int dp, int tp) {
  return *StageOf(module, pp, dp).at(static_cast<std::size_t>(tp));
}

std::vector<Job::Rows> Job::ForwardStage(const std::string& module, int pp, int dp,
                                         const ForwardPass& pass, const std::vector<Rows>& rows,
                                         LossSums* loss) {
  const auto programs = StageOf(module, pp, dp);
  std::vector<ForwardResult> results(programs.size());
  std::vector<std::function<void()>> work;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    work.emplace_back([&, i] {
      ForwardPass own = pass;
      own.inputs = rows.size() == 1 ? rows.front() : rows.at(i);
      results[i] = programs[i]->Forward(own);
      if (results[i].finish) results[i].finish(results[i]);
    });
  }
  RunThreads(work);
  const auto tp = static_cast<std::size_t>(FindModule(config_, module).layout.tp);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const LossSums& first = results[i / tp * tp].loss;  // of the ranks along tp
    if (results[i].loss.loss != first.loss || results[i].loss.correct != first.correct) {
      throw std::logic_error("ranks of one stage disagree about the loss");
    }
    if (loss && i % tp == 0) *loss += first;
  }
  std::vector<Rows> outputs;
  for (const ForwardResult& result : results) outputs.push_back(result.outputs);
  return outputs;
}

std::vector<Job::Rows> Job::BackwardStage(const std::string& module, int pp, int dp,
                                          const BackwardPass& pass,
                                          const std::vector<Rows>& gradients) {
  if (!RunsBackward(config_, module, pp)) return {{}};
  const auto programs = StageOf(module, pp, dp);
  std::vector<BackwardResult> results(programs.size());
  std::vector<std::function<void()>> work;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    work.emplace_back([&, i] {
      BackwardPass own = pass;
      own.gradients = gradients.size() == 1 ? gradients.front() : gradients.at(i);
      results[i] = programs[i]->Backward(own);
      if (results[i].finish) results[i].finish(results[i]);
    });
  }
  RunThreads(work);
  for (const Buffer& gradient : results[0].gradients) num_undefined_ += !gradient.defined();
  std::vector<Rows> inputs;
  for (const BackwardResult& result : results) inputs.push_back(result.gradients);
  return inputs;
}

void Job::ForwardAll(std::int64_t unit, const std::vector<Inputs>& parts, bool train, double scale,
                     LossSums* loss) {
  for (std::size_t dp = 0; dp < parts.size(); ++dp) {
    const auto data = std::make_shared<const Inputs>(parts[dp]);
    std::map<std::string, Buffer> arrived;  // by name of the edge
    for (const ModuleConfig& module : config_.modules) {
      if (module.inline_in) continue;
      std::vector<Rows> rows(1);
      for (const EdgeConfig* edge : IncomingEdges(config_, module.name)) {
        rows.front().push_back(arrived.at(ProjectorName(*edge)));
      }
      for (int pp = 0; pp < module.layout.pp; ++pp) {
        rows = ForwardStage(module.name, pp, static_cast<int>(dp),
                            {.unit = unit,
                             .train = train,
                             .loss_scale = scale,
                             .inputs = {},
                             .data = data,
                             .step = step_},
                            rows, loss);
      }
      const auto edges = OutgoingEdges(config_, module.name);
      for (std::size_t i = 0; i < edges.size(); ++i) {
        arrived[ProjectorName(*edges[i])] = rows.front().at(i);
      }
    }
  }
}

void Job::BackwardAll(std::int64_t unit) {
  for (int dp = 0; dp < config_.Sink().layout.dp; ++dp) {
    std::map<std::string, Buffer> arrived;  // by name of the edge
    for (std::size_t m = config_.modules.size(); m-- > 0;) {
      const ModuleConfig& module = config_.modules[m];
      if (module.inline_in) continue;
      std::vector<Rows> gradients(1);
      for (const EdgeConfig* edge : OutgoingEdges(config_, module.name)) {
        gradients.front().push_back(arrived[ProjectorName(*edge)]);
      }
      for (int pp = module.layout.pp; pp-- > 0;) {
        gradients = BackwardStage(module.name, pp, dp,
                                  {.unit = unit,
                                   .gradients = {},
                                   .split_weights = split_,
                                   .last = unit + 1 == next_unit_},
                                  gradients);
      }
      const auto edges = IncomingEdges(config_, module.name);
      for (std::size_t i = 0; i < gradients.front().size(); ++i) {
        arrived[ProjectorName(*edges.at(i))] = gradients.front()[i];
      }
    }
  }
}

void Job::WeightsAll(std::int64_t unit) {
  std::vector<std::function<void()>> work;  // ranks along tp may meet in it
  for (const Shard& shard : shards_) {
    if (!RunsBackward(config_, shard.address.module, shard.address.pp)) continue;
    work.emplace_back([&shard, unit] { shard.program->BackwardWeights(unit); });
  }
  RunThreads(work);
}

LossSums Job::TrainRound(const std::vector<std::vector<Inputs>>& parts, double loss_scale) {
  LossSums loss;
  const std::int64_t first = next_unit_;
  for (const auto& replicas : parts) ForwardAll(next_unit_++, replicas, true, loss_scale, &loss);
  for (std::int64_t unit = first; unit < next_unit_; ++unit) BackwardAll(unit);
  for (std::int64_t unit = first; split_ && unit < next_unit_; ++unit) WeightsAll(unit);
  return loss;
}

LossSums Job::Train(const std::vector<Inputs>& whole, double loss_scale) {
  std::vector<std::vector<Inputs>> parts;
  const auto dp = static_cast<std::size_t>(config_.Sink().layout.dp);
  for (const Inputs& inputs : whole) {
    const auto num_samples = static_cast<std::size_t>(inputs.tokens.num_rows());
    auto& replicas = parts.emplace_back();
    for (std::size_t d = 0; d < dp; ++d) {
      replicas.push_back(Slice(config_, inputs, d * num_samples / dp, (d + 1) * num_samples / dp));
    }
  }
  return TrainRound(parts, loss_scale);
}

LossSums Job::Evaluate(const Inputs& whole) {
  LossSums loss;
  const auto num_samples = static_cast<std::size_t>(whole.tokens.num_rows());
  ForwardAll(next_unit_++, {Slice(config_, whole, 0, num_samples)}, false, 1.0, &loss);
  return loss;
}

double Job::ReduceGradients() {
  std::vector<ReducedGradients> reduced(shards_.size());
  std::vector<std::function<void()>> work;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    work.emplace_back([&, i] {
      ReducedGradients done = shards_[i].program->ReduceGradients();
      if (done.finish) done.finish(done);
      reduced[i] = std::move(done);
    });
  }
  RunThreads(work);
  double sum = 0.0;
  squares_by_part_.clear();
  for (const ReducedGradients& shard : reduced) {
    sum += shard.squared_norm;
    for (const auto& [part, squares] : shard.squared_norms) squares_by_part_[part] += squares;
  }
  return sum;
}

void Job::Update(const UpdateStep& step) {
  ++step_;
  for (Shard& shard : shards_) shard.program->Update(step);
}

namespace {

/// Calls `visit(index in the whole, index in the piece)` for every element of a piece.
template <class Visit>
void ForEachElement(const TensorPiece& piece, Visit visit) {
  const Shape& shape = piece.value.shape();
  for (std::int64_t i = 0; i < NumElements(shape); ++i) {
    std::int64_t rest = i;
    std::int64_t whole = 0;
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      whole += (rest % shape[d] + piece.offsets[d]) * stride;
      rest /= shape[d];
      stride *= piece.global_shape[d];
    }
    visit(static_cast<std::size_t>(whole), static_cast<std::size_t>(i));
  }
}

double ValueAt(const Buffer& buffer, std::size_t i) {
  return buffer.dtype() == DType::kFloat32 ? static_cast<double>(buffer.as<float>()[i])
                                           : buffer.as<double>()[i];
}

}  // namespace

std::map<std::string, std::vector<double>> Job::Tensors(TensorKind kind) const {
  std::map<std::string, std::vector<double>> whole;
  for (const Shard& shard : shards_) {
    for (const TensorPiece& piece : shard.program->Tensors(kind)) {
      auto& values = whole[piece.name];
      values.resize(static_cast<std::size_t>(NumElements(piece.global_shape)),
                    std::numeric_limits<double>::quiet_NaN());
      ForEachElement(piece, [&](std::size_t to, std::size_t from) {
        const double value = ValueAt(piece.value, from);
        if (!std::isnan(values[to]) && values[to] != value) {
          throw std::logic_error(piece.name + ": copies differ");
        }
        values[to] = value;
      });
    }
  }
  for (const auto& [name, values] : whole) {
    if (std::ranges::any_of(values, [](double v) { return std::isnan(v); })) {
      throw std::logic_error(name + ": not covered, or not a number");
    }
  }
  return whole;
}

std::map<std::string, std::int64_t> Job::OwnedElements() const {
  std::map<std::string, std::int64_t> owned;
  for (const Shard& shard : shards_) {
    for (const TensorPiece& piece : shard.program->Tensors(TensorKind::kParameter)) {
      if (piece.owner) owned[piece.name] += piece.value.num_elements();
    }
  }
  return owned;
}

double Difference(const std::map<std::string, std::vector<double>>& a,
                  const std::map<std::string, std::vector<double>>& b) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return kInfinite;
  const auto largest = [](const std::vector<double>& values) {
    double result = 0.0;
    for (const double value : values) result = std::max(result, std::abs(value));
    return result;
  };
  double floor = 0.0;
  for (const auto& [name, values] : a) floor = std::max(floor, 1e-3 * largest(values));
  double worst = 0.0;
  for (const auto& [name, values] : a) {
    const auto found = b.find(name);
    if (found == b.end() || found->second.size() != values.size()) return kInfinite;
    const double scale = std::max(largest(values), floor);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double difference = std::abs(values[i] - found->second[i]);
      if (difference > 0.0) worst = std::max(worst, difference / scale);
    }
  }
  return worst;
}

}  // namespace troupe
