// The inputs of every module of a run, cut the way each module's own layout asks for.
//
// Sample k of a training round of step s, k in [0, global batch), is the row at place
// s * global_batch + k of the endless shuffled order; sample k of an evaluation round is row k of
// the held-out file, and empty beyond its end. Microbatch u holds samples [u * N, (u + 1) * N).
// Which rows a step sees therefore depends on the seed and the global batch, never on a layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "data/batch.hpp"
#include "data/llava.hpp"
#include "data/sample.hpp"
#include "data/tokenizer.hpp"
#include "layout/route.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

/// Thread-safe.
class LlavaSource : public InputSource {
 public:
  /// Reads both JSON files and checks every row; image files are opened when they are needed.
  /// Throws DataError, or std::runtime_error for a tokenizer that does not fit.
  explicit LlavaSource(const Config& config);
  LlavaSource(const LlavaSource&) = delete;
  LlavaSource& operator=(const LlavaSource&) = delete;

  /// A language model's unit is a microbatch; an encoder's too, or a window of them when it is
  /// colocated. Sample numbers: place in the microbatch, m * N + n in a window.
  std::shared_ptr<const Inputs> Load(const std::string& module, int dp, const Round& round,
                                     std::int64_t unit) override;
  std::int64_t CountValidTokens(const Round& round) override;

  /// The whole round as one unsharded batch, with the images and positions of every encoder:
  /// what the reference of `troupe verify` computes on. Sample numbers are k.
  Inputs LoadWhole(const Round& round);

  std::int64_t train_size() const { return std::ssize(train_.set.rows); }
  /// Training rows that are longer than the context and lose their end.
  std::int64_t num_cut_rows() const { return train_.num_cut; }
  std::int64_t held_out_size() const { return std::ssize(held_out_.set.rows); }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  /// A file and what its rows come to.
  struct CountedSet {
    LlavaSet set;
    std::vector<std::int64_t> num_labels;  ///< by row
    std::int64_t num_cut = 0;              ///< rows whose end does not fit the context
  };
  using Samples = std::vector<NumberedSample>;

  void FindEncoders();
  void FitLanguageModels();
  void ReadSet(const std::string& file, CountedSet& into) const;

  const CountedSet& SetOf(const Round& round) const { return round.train ? train_ : held_out_; }
  /// Row of sample k, -1 beyond the end of the held-out file.
  std::int64_t RowOf(const Round& round, std::int64_t k) const;
  Sample BuildOne(const Round& round, std::int64_t k) const;
  /// Samples `interval` of the round's part that begins at sample `first`, numbered from there.
  Samples BuildInterval(const Round& round, std::int64_t first, Interval interval) const;

  Inputs LanguageInputs(const ModuleConfig& module, int dp, const Round& round,
                        std::int64_t microbatch) const;
  Inputs EncoderInputs(std::size_t encoder, int dp, const Round& round, std::int64_t unit) const;
  Samples SamplesOf(const ModuleConfig& module, int dp, const Round& round,
                    std::int64_t unit) const;
  /// Positions and expected rows of one encoder for the text already in `inputs`.
  void AddEdge(const Samples& samples, std::size_t encoder, Inputs& inputs) const;
  /// [n, 3, S, S], in (sample, image) order.
  Buffer LoadImages(const LlavaSet& set, const Samples& samples, std::size_t encoder) const;

  Config config_;
  std::vector<const ModuleConfig*> encoders_;  ///< in the order of the config file
  std::unique_ptr<const Tokenizer> tokenizer_;
  SampleFormat format_;
  CountedSet train_;
  CountedSet held_out_;
};

}  // namespace troupe
