// The ways to run encoders, for one way to run the language model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "plan/search/choices.hpp"
#include "plan/search/module_table.hpp"
#include "plan/search/pipeline.hpp"
#include "plan/search/search_job.hpp"

namespace troupe {

/// An option of an encoder, and what it stands for.
struct EncoderWay {
  RunOption option;
  EncoderPoint point;
};

class EncoderWays {
 public:
  /// `job` outlives it.
  explicit EncoderWays(SearchJob& job);

  /// Returns the ways of every encoder.
  std::vector<std::vector<EncoderWay>> With(const SinkPoint& sink);
  /// Returns the most that encoders on the ranks of the sink need on each if they keep all activations.
  double MostShared(const SinkPoint& sink);

 private:
  /// So many samples have a whole number of items.
  static constexpr std::int64_t kSamples = 1024;
  /// The tables for units of kSamples and of twice as many, between which and below all is linear.
  struct Tables {
    ModuleTable one;
    ModuleTable two;
    std::map<int, std::pair<std::vector<StageSums>, std::vector<StageSums>>> cut;  ///< by pp
  };

  Tables& TablesOf(std::size_t encoder, std::size_t level);
  /// Returns the pipeline of an encoder whose replicas have `run.samples` of each unit.
  Pipeline PipelineOf(std::size_t encoder, std::size_t level, const PipelineRun& run);
  /// Returns the layouts of one replica's stage that the encoder allows: tp and cp.
  std::vector<Layout> DivisionsOf(std::size_t encoder) const;
  /// Returns how an encoder on the ranks of the sink runs; nothing if it cannot in that division.
  std::optional<EncoderWay> Colocated(const SinkPoint& sink, std::size_t encoder,
                                      const Layout& division, std::size_t level);
  /// Returns the bytes of its rows and their gradients that wait on the sink's first stage.
  double WaitingBytes(const SinkPoint& sink, std::size_t encoder);
  void AddColocated(const SinkPoint& sink, std::size_t encoder, const Layout& division,
                    std::vector<EncoderWay>& ways);
  void AddDisjoint(const SinkPoint& sink, std::size_t encoder, const Layout& division,
                   std::vector<EncoderWay>& ways);

  SearchJob& job_;
  Config config_;                      ///< with the sink's layout that is looked at
  std::vector<ModuleConfig> modules_;  ///< the encoders, each with the layout that is looked at
  std::map<std::tuple<std::size_t, int, int, std::size_t>, Tables>
      tables_;  ///< by encoder, tp, cp, level
};

}  // namespace troupe
