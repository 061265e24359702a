// Which experts a run chose, so that a comparison can follow it: where two experts are almost equal, rounding
// decides, and all numbers after that differ.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace troupe {

/// A token of a training step in a layer.
struct RoutedToken {
  std::int64_t step = 0;
  std::string module = {};
  std::int64_t layer = 0;   ///< of the module
  std::int64_t sample = 0;  ///< place in the global batch
  std::int64_t token = 0;
  friend auto operator<=>(const RoutedToken&, const RoutedToken&) = default;
};

/// Thread-safe.
class ExpertChoices {
 public:
  void Record(const RoutedToken& token, const std::vector<std::int64_t>& experts);
  /// Returns the recorded choice, or `own` if there is none. Counts whether they are the same experts.
  std::vector<std::int64_t> Follow(const RoutedToken& token, std::vector<std::int64_t> own);
  /// Forgets the choices of a step and of those before it, not what was counted.
  void Forget(std::int64_t step);

  struct Counts {
    std::int64_t asked = 0;      ///< tokens in all layers
    std::int64_t followed = 0;   ///< of these, those with a recorded choice
    std::int64_t differing = 0;  ///< of these, those whose `own` were others
  };
  Counts counts() const;

 private:
  mutable std::mutex mutex_;
  std::map<RoutedToken, std::vector<std::int64_t>> experts_;
  Counts counts_;
};

/// While it lives, the routers of this process record their choices.
class RecordExpertChoices {
 public:
  explicit RecordExpertChoices(ExpertChoices& choices);
  ~RecordExpertChoices();
  RecordExpertChoices(const RecordExpertChoices&) = delete;
  RecordExpertChoices& operator=(const RecordExpertChoices&) = delete;

  /// Where they go; null: nowhere.
  static ExpertChoices* Active();
};

}  // namespace troupe
