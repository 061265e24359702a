// The ways to run encoders, for one way to run the language model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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

 private:
  /// So many samples have a whole number of items.
  static constexpr std::int64_t kSamples = 1024;
  /// The tables for units of kSamples and of twice as many, between which and below all is linear.
  struct Tables {
    ModuleTable one;
    ModuleTable two;
    std::map<int, std::pair<std::vector<StageSums>, std::vector<StageSums>>> cut;  ///< by pp
  };

  Tables& TablesOf(std::size_t encoder, int tp, std::size_t level);
  /// Returns the pipeline of an encoder whose replicas have `run.samples` of each unit.
  Pipeline PipelineOf(std::size_t encoder, std::size_t level, const PipelineRun& run);
  void AddColocated(const SinkPoint& sink, std::size_t encoder, int tp,
                    std::vector<EncoderWay>& ways);
  void AddDisjoint(const SinkPoint& sink, std::size_t encoder, int tp,
                   std::vector<EncoderWay>& ways);

  SearchJob& job_;
  std::vector<ModuleConfig> modules_;  ///< the encoders, each with the layout that is looked at
  std::map<std::tuple<std::size_t, int, std::size_t>, Tables> tables_;
};

}  // namespace troupe
