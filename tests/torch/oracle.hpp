// What transformers computed with the folders of tests/oracle/ in float64, and jobs that start from
// them. tools/oracle/record_models.py has made them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "configs/config.hpp"
#include "tests/torch/job.hpp"

namespace troupe::oracle {

/// By our names.
using Values = std::map<std::string, std::vector<double>>;

std::string FolderOf(const std::string& family);

/// Loads `toml` as a configuration in float64 without data; its weights are of `family`:
/// "weights = \"hf:FAMILY\"".
Config Load(const std::string& family, std::string toml);

/// Fills all programs of `job` from the folders of `config`.
void ReadAllWeights(Job& job, const Config& config);

class Expected {
 public:
  explicit Expected(const std::string& family)
      : file_(FolderOf(family) + "/expected.safetensors") {}

  bool Has(const std::string& name) const { return file_.Find(name) != nullptr; }
  Buffer Read(const std::string& name) const { return file_.Read(name); }
  std::vector<double> Numbers(const std::string& name) const;
  /// Returns the tensors KIND/NAME of all of `own`, parameters of `config`.
  Values Of(const Config& config, const std::string& kind, const Values& own) const;

 private:
  SafetensorsReader file_;
};

inline constexpr std::int64_t kImageToken = 30;

/// The first images of a recording, and where their rows and newline rows go.
struct PlacedImages {
  FieldItems items;
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> newlines;
};
/// Returns the images that stand at the image tokens of `tokens`.
PlacedImages ImagesFor(const std::string& family, std::span<const std::int64_t> tokens);

/// Returns the tokens and labels of a recording, and of a whole model the images, whose rows stand at
/// the image tokens.
Inputs InputsOf(const std::string& family);

/// Trains on `inputs`, the one microbatch of every step, with the optimizer of the recordings.
struct Trained {
  std::vector<double> losses;  ///< means over the labels, before each step
  std::vector<double> norms;
};
Trained FiveSteps(Job& job, const Inputs& inputs);

}  // namespace troupe::oracle
