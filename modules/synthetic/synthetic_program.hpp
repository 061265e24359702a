// A stage that takes a stated time and computes something trivial but exact: for schedules,
// benchmarks and tests of everything that is not a model.
//
// Rows are float64 [rows, hidden]. With one weight w per stage, inputs x_0, x_1, ... and fixed
// patterns a_k:   t = sum over k >= 1 of <x_k, a_k>
//   stage      y = w * x_0 + t          on every outgoing link
//   sink       loss = w * (<x_0, a_0> + t)
// A place in a microbatch has its own a_k, so a loss depends on the order of samples.
// A source makes its own x_0: the address of every row (sample, position). So a row that is lost,
// doubled, stale or swapped changes a gradient.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "configs/config.hpp"
#include "kinds/synthetic.hpp"
#include "modules/batch_order.hpp"
#include "modules/input_source.hpp"
#include "transport/communicator.hpp"

namespace troupe {

struct SyntheticShape {
  std::size_t links_out = 0;
  bool trains = true;
  std::vector<bool> in_carries_gradient;  ///< by incoming link
  RowCut cut = {};                        ///< of a source's rows
  int part = 0;                           ///< along cp
  std::uint64_t seed = 0;                 ///< of TimeFactor
};

/// Returns the factor of the times of `sample`, counted from the start of the run: log-normal with a mean
/// of 1 and that deviation of the logarithm, in thousandths, so that every machine has the same.
double TimeFactor(std::uint64_t seed, double sigma, std::int64_t sample);
/// Returns the seed of a module's factors.
std::uint64_t TimeSeed(const Config& config, const std::string& module);

/// The shape of one shard of a module of any kind. An inline encoder adds no link.
SyntheticShape SyntheticShapeOf(const Config& config, const ShardAddress& shard);

class SyntheticProgram : public StageProgram {
 public:
  /// `replicas` sums the gradients; null = there is nothing to sum, or the caller sums.
  SyntheticProgram(ShardAddress shard, const SyntheticConfig& config, SyntheticShape shape,
                   std::shared_ptr<Communicator> replicas);

  ForwardResult Forward(const ForwardPass& pass) override;
  BackwardResult Backward(const BackwardPass& pass) override;
  void BackwardWeights(std::int64_t unit) override;
  ReducedGradients ReduceGradients() override;
  void Update(const UpdateStep& step) override;
  std::vector<TensorPiece> Tensors(TensorKind kind) const override;
  void SetTensors(TensorKind kind, const std::vector<TensorPiece>& pieces) override;
  void PrepareCopies(const ShardAddress* first) override {
    if (first != nullptr) copies_ = Owns(*first);
  }
  std::size_t state_bytes() const override { return 2 * sizeof(double); }

  double gradient() const { return *gradient_.as<double>(); }

 protected:
  std::vector<TensorPiece> TensorsToCopy(TensorKind kind) const override;

 private:
  struct Flight {
    std::vector<Buffer> inputs;
    double scale = 1.0;
    double factor = 1.0;  ///< of its times
  };
  /// The rest of a split backward.
  struct Weights {
    double gradient = 0.0;
    double factor = 1.0;
  };
  /// The mean factor of the samples.
  double FactorOf(const Inputs& inputs) const;
  Buffer SourceRows(const Inputs& inputs) const;
  /// Whether the stage's weight is that shard's to report.
  static bool Owns(const ShardAddress& shard) {
    return shard.dp == 0 && shard.tp == 0 && shard.cp == 0;
  }

  ShardAddress shard_;
  SyntheticConfig config_;
  SyntheticShape shape_;
  std::shared_ptr<Communicator> replicas_;
  bool copies_ = Owns(shard_);
  Buffer weight_;
  Buffer gradient_;
  std::map<std::int64_t, Flight> flights_;
  std::map<std::int64_t, Weights> weights_;  ///< by unit
};

/// Gives every module that reads data rows_per_sample rows of each of its samples, and in `tokens` the numbers
/// of the samples, counted in the order in which a run draws them. So each sample of a run has its own
/// values, whatever the layout. With data.order = "balanced" samples of a step change places.
class SyntheticSource : public InputSource {
 public:
  explicit SyntheticSource(const Config& config);
  std::shared_ptr<const Inputs> Assemble(const FeedUnit& unit,
                                         const std::vector<Buffer>& samples) override;
  RoundCounts Count(const Round& round) override;
  void TakeLayouts(const Config& config) override;

 private:
  /// The times of a sample of the run on every stage.
  SampleTimes TimesOf(std::int64_t sample) const;

  Config config_;
  std::unique_ptr<const BatchOrder> order_;
};

/// Programs of the synthetic modules of `config`.
/// `replicas(shard)` gives the communicator over the shard's replicas; may be empty.
ProgramFactory MakeSyntheticPrograms(
    const Config& config,
    std::function<std::shared_ptr<Communicator>(const ShardAddress&)> replicas = {});

}  // namespace troupe
