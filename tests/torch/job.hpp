// Runs the torch programs of a small job without actors: threads for the ranks of a stage, plain
// loops for everything else, so that a test sees the programs alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "kinds/llama.hpp"
#include "kinds/vit.hpp"
#include "modules/groups.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

/// A tiny vit "vision" and llama "language" in float64, one rank each, with a projector between.
/// Vocabulary 21 and hidden sizes are chosen so that uneven cuts occur.
Config SmallConfig();

ModuleConfig& ModuleOf(Config& config, const std::string& name);

/// A language model alone on ranks from 0 on, large enough that padding and norms do not count in its
/// memory and traffic.
Config LanguageAlone(Layout layout, Precision precision);

/// Sets tp, pp and dp of a module and gives it that many ranks.
void SetLayout(Config& config, const std::string& module, Layout layout);

/// [n] int64.
Buffer IntegerBuffer(const std::vector<std::int64_t>& values);

/// `images_per_sample` images before the text of each sample; values depend on `seed`. With
/// `labelled` false no token has a label.
Inputs MakeInputs(const Config& config, const std::vector<int>& images_per_sample, int seed,
                  bool labelled = true);

/// The samples [begin, end) of `whole` as one data-parallel shard gets them.
Inputs Slice(const Config& config, const Inputs& whole, std::size_t begin, std::size_t end);

/// All shards of a job whose modules have equal dp (or one module of dp 1 feeding another).
class Job {
 public:
  /// `split`: backwards leave out the weights, which follow when all of a round are done.
  /// `portable`: as on a device, see TorchOptions.
  explicit Job(const Config& config, bool split = false, bool portable = false);
  /// Each rank is a separate process and has the groups that `groups_of` returns.
  Job(const Config& config, const std::function<std::shared_ptr<GroupTable>(int rank)>& groups_of);

  /// Forward and backward of some microbatches, all forwards first; replica d gets parts[u][d].
  LossSums TrainRound(const std::vector<std::vector<Inputs>>& parts, double loss_scale);
  LossSums Train(const std::vector<Inputs>& whole, double loss_scale);
  LossSums Evaluate(const Inputs& whole);
  /// Sum over all shards of the squared norm.
  double ReduceGradients();
  /// The same of the latest reduction by module and projector.
  const std::map<std::string, double>& squares_by_part() const { return squares_by_part_; }
  void Update(const UpdateStep& step);

  /// Whole tensors by name, every piece compared where pieces overlap and every element covered.
  std::map<std::string, std::vector<double>> Tensors(TensorKind kind) const;
  /// By name: the number of elements that have an owner.
  std::map<std::string, std::int64_t> OwnedElements() const;
  StageProgram& Program(const std::string& module, int pp = 0, int dp = 0, int tp = 0);
  std::size_t num_undefined_input_gradients() const { return num_undefined_; }

 private:
  struct Shard {
    ShardAddress address;
    std::unique_ptr<StageProgram> program;
  };
  using Rows = std::vector<Buffer>;

  void AddShards(const std::function<ProgramFactory(int rank)>& make);
  std::vector<StageProgram*> StageOf(const std::string& module, int pp, int dp);
  /// `rows` of each rank, or the same for all, to those of each rank.
  std::vector<Rows> ForwardStage(const std::string& module, int pp, int dp, const ForwardPass& pass,
                                 const std::vector<Rows>& rows, LossSums* loss);
  std::vector<Rows> BackwardStage(const std::string& module, int pp, int dp,
                                  const BackwardPass& pass, const std::vector<Rows>& gradients);
  void ForwardAll(std::int64_t unit, const std::vector<Inputs>& parts, bool train, double scale,
                  LossSums* loss);
  void BackwardAll(std::int64_t unit);
  void WeightsAll(std::int64_t unit);

  Config config_;
  bool split_;
  std::vector<Shard> shards_;
  std::int64_t next_unit_ = 0;
  std::int64_t step_ = 0;  ///< updates
  std::size_t num_undefined_ = 0;
  std::map<std::string, double> squares_by_part_;
};

/// Largest difference over all tensors, relative to the largest value of each, but at least to a
/// thousandth of the largest of all: the gradient of a key bias is zero but for rounding, since a
/// softmax ignores what all its inputs share. A missing name or another size is infinite.
double Difference(const std::map<std::string, std::vector<double>>& a,
                  const std::map<std::string, std::vector<double>>& b);

/// Runs one function per thread; rethrows the first failure.
void RunThreads(const std::vector<std::function<void()>>& work);

}  // namespace troupe
