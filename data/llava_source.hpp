// The inputs of every module of a run, cut the way each module's own layout asks for.
//
// Sample k of a training round of step s, k in [0, global batch), is the row at place
// s * global_batch + k of the endless shuffled order; sample k of an evaluation round is row k of
// the held-out file, and empty beyond its end. A row that is skipped (data.on_error) is replaced by
// the next one of the file that is used, in the held-out file by nothing. Microbatch u holds
// samples [u * N, (u + 1) * N). Which rows a step sees therefore depends on the seed and the global
// batch, never on a layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "data/batch.hpp"
#include "data/counted_set.hpp"
#include "data/fault_tally.hpp"
#include "data/llava.hpp"
#include "data/sample.hpp"
#include "data/sample_format.hpp"
#include "data/tokenizer.hpp"
#include "layout/route.hpp"
#include "modules/sample_names.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

/// Thread-safe.
class LlavaSource : public InputSource, public SampleNames {
 public:
  /// Reads both lists, checks every row, and every image to the depth of `images`. Throws
  /// DataError that names the first few faults, unless `policy` skips their rows, or where no row
  /// is left.
  explicit LlavaSource(const Config& config, ImageDepth images = ImageDepth::kNone,
                       FaultPolicy policy = {});
  LlavaSource(const LlavaSource&) = delete;
  LlavaSource& operator=(const LlavaSource&) = delete;

  /// A language model's unit is a microbatch; an encoder's too, or a window of them when it is
  /// colocated. Sample numbers: place in the microbatch, m * N + n in a window.
  std::shared_ptr<const Inputs> Load(const std::string& module, int dp, const Round& round,
                                     std::int64_t unit) override;
  std::int64_t CountValidTokens(const Round& round) override;
  std::vector<std::string> NamesOf(const std::string& module, int dp, const Round& round,
                                   std::int64_t unit) const override;

  /// The whole round as one unsharded batch, with the images and positions of every encoder:
  /// what the reference of `troupe verify` computes on. Sample numbers are k.
  Inputs LoadWhole(const Round& round);

  /// Samples of the round whose row is skipped: another row takes their place in training, nothing
  /// does in an evaluation.
  std::int64_t CountSkipped(const Round& round) const;
  /// "3, 8 of data.train, none of data.held_out": the rows that data.on_error skips.
  std::string SkippedText() const;
  /// A line for each of the first few skipped rows, and one that counts them; empty for none.
  const std::vector<std::string>& skipped_lines() const { return skipped_lines_; }

  std::int64_t train_size() const { return std::ssize(train_.set.rows); }
  /// Training rows that are not skipped.
  std::int64_t num_used_rows() const { return train_size() - train_.skipped.count(); }
  /// Training rows that are longer than the context and lose their end.
  std::int64_t num_cut_rows() const { return train_.num_cut; }
  std::int64_t held_out_size() const { return std::ssize(held_out_.set.rows); }
  const Tokenizer& tokenizer() const { return *owned_.tokenizer; }

 private:
  using Samples = std::vector<NumberedSample>;

  /// Throws DataError where no row of `counted` is left, or none has an answer.
  void RequireAnswers(const CountedSet& counted) const;

  const CountedSet& SetOf(const Round& round) const { return round.train ? train_ : held_out_; }
  /// Row of sample k as the order has it, -1 beyond the end of the held-out file.
  std::int64_t DrawnRow(const Round& round, std::int64_t k) const;
  /// The row that is used for sample k, -1 for none.
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
  OwnedFormat owned_;
  const SampleFormat& format_ = owned_.format;
  CountedSet train_;
  CountedSet held_out_;
  std::vector<std::string> skipped_lines_;
};

}  // namespace troupe
