// Where feeds get the inputs of their modules from. Inputs may be made of samples that must be decoded
// first; workers do that on other threads and machines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "modules/stage_program.hpp"

namespace troupe {

/// One round of microbatches: a training step or an evaluation.
struct Round {
  std::int64_t number = 0;  ///< counts both kinds from the start of the run
  bool train = true;
  std::int64_t step = 0;          ///< training: the step, from 0; evaluation: steps done so far
  std::int64_t microbatches = 0;  ///< in this round
  double loss_scale = 1.0;
  double token_scale = 0.0;
  double sample_scale = 0.0;
  std::int64_t place = 0;  ///< training: of its first sample (modules/data_position.hpp)
  std::int64_t group = 0;  ///< DataPosition::group
};

/// What the samples of a round have in all.
struct RoundCounts {
  std::int64_t labels = 0;  ///< valid ones
  std::int64_t tokens = 0;  ///< of text and images, without padding
  std::int64_t samples = 0;
};

/// A unit of work of one replica of a module.
struct FeedUnit {
  std::string module;
  int dp = 0;
  Round round;
  std::int64_t unit = 0;  ///< 0 at the round's start
};

/// What a worker needs to know to prepare a sample, in any process that has opened the same data.
struct SampleTicket {
  bool train = true;     ///< of the training set, else of the held-out one
  std::int64_t row = 0;  ///< in the set
  std::uint64_t fields =
      0;                   ///< the modules whose items are needed: bit i for encoder i of the data
  std::int64_t bytes = 0;  ///< that the prepared sample takes, about
};

/// Thread-safe.
class InputSource {
 public:
  virtual ~InputSource() = default;
  /// Whether its units are made of samples that workers prepare.
  virtual bool prepares() const { return false; }
  /// Returns the samples to prepare for a unit.
  virtual std::vector<SampleTicket> TicketsOf(const FeedUnit& /*unit*/) { return {}; }
  /// Returns the sample as bytes. The result depends only on the ticket. Throws naming file, row and
  /// reason.
  virtual Buffer Prepare(const SampleTicket& ticket);
  /// Returns the inputs of a unit. `samples`: what Prepare has returned for each of its tickets.
  virtual std::shared_ptr<const Inputs> Assemble(const FeedUnit& unit,
                                                 const std::vector<Buffer>& samples) = 0;
  /// Prepares the samples of a unit and assembles them.
  std::shared_ptr<const Inputs> Load(const std::string& module, int dp, const Round& round,
                                     std::int64_t unit);
  virtual RoundCounts Count(const Round& round) = 0;
  /// From here on the modules have the layouts of `config`, which differs in these alone. Nothing may
  /// load meanwhile.
  virtual void TakeLayouts(const Config& /*config*/) {}
};

}  // namespace troupe
