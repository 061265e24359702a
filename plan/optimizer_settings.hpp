// The values of [optimizer] that apply to one module or projector.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"
#include "kinds/parameter.hpp"

namespace troupe {

struct OptimizerSettings {
  double learning_rate = 0.0;  ///< the highest
  double min_learning_rate = 0.0;
  double weight_decay = 0.0;

  /// Returns the learning rate at a factor in [0, 1] (modules/learning_rate.hpp).
  double RateAt(double factor) const {
    return min_learning_rate + factor * (learning_rate - min_learning_rate);
  }
};

/// Returns the values of a module or projector (ParameterSpec::part). Those of a projector come
/// before those of the module on whose devices it runs, and those before [optimizer]. Throws
/// std::invalid_argument if there is no such part.
OptimizerSettings SettingsOf(const Config& config, const std::string& part);

/// How the holders of a module's parameters (Layout::num_holders) divide the state of its optimizer. An
/// instance holds all of the state once; holder n is in instance n / shards.
struct StateSharding {
  int shards = 1;     ///< holders of an instance, each with one part
  int instances = 1;  ///< holders with the same part

  int IndexOf(int holder) const { return holder % shards; }
  int InstanceOf(int holder) const { return holder / shards; }
};
/// Those of a module's experts and of all its other parameters, which have other holders.
struct StateShardings {
  StateSharding others;
  StateSharding experts;
};
/// Experts have as many instances as the greatest common divisor of those of the others and of their own
/// holders.
StateShardings ShardingsOf(const Config& config, const ModuleConfig& module);

/// Returns the weight decay of a parameter: 0 if optimizer.no_decay names one of its traits.
double WeightDecayOf(const Config& config, const ParameterSpec& spec);

/// Returns the modules and projectors that train, in the order of the file, modules first.
std::vector<std::string> TrainedParts(const Config& config);

}  // namespace troupe
