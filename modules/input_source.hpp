// Where feeds get the inputs of their modules from. Inputs may be made of samples that must be decoded
// first; workers do that on other threads.
#pragma once

#include <cstddef>
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

/// What a worker needs to know to prepare a sample.
struct SampleTicket {
  bool train = true;         ///< of the training set, else of the held-out one
  std::int64_t row = 0;      ///< in the set
  std::int32_t source = -1;  ///< place in data.sources, 0 in data.train; -1: data.held_out
  std::uint64_t fields = 0;  ///< bit i: the items of encoder i of the data are needed
  std::int64_t bytes = 0;    ///< that the prepared sample takes, about
  bool has_items = false;    ///< it has items of these encoders
};

/// What is done with a sample before it can be used, in this order. kTransfer: its way from a feed
/// machine to the job.
enum class DataPhase : std::uint8_t { kRead, kTokenize, kDecode, kTransfer };
inline constexpr std::size_t kNumDataPhases = 4;
/// "read".
const char* ToString(DataPhase phase);

/// What took longest of the preparation of a unit.
struct DataDelay {
  std::int32_t source = -1;  ///< as SampleTicket::source
  DataPhase phase = DataPhase::kRead;
  std::string process = {};  ///< name
  std::int64_t ns = 0;       ///< of all workers together; 0: there was nothing to prepare
  friend bool operator==(const DataDelay&, const DataDelay&) = default;
};

/// The time for which the devices of a stage waited for its input data alone.
struct DataWait {
  std::int64_t ns = 0;
  std::int64_t longest_ns = 0;  ///< of a single wait
  DataDelay delay = {};         ///< of the unit that was waited for then
};

/// A sample under preparation. Each function is called once, in this order. All throw naming file, row
/// and reason.
class SampleWork {
 public:
  virtual ~SampleWork() = default;
  virtual void Read() = 0;
  virtual void Tokenize() = 0;
  /// Returns the sample as bytes. They depend only on the ticket.
  virtual Buffer Decode() = 0;
};

/// Thread-safe.
class InputSource {
 public:
  virtual ~InputSource() = default;
  /// Whether its units are made of samples that workers prepare.
  virtual bool prepares() const { return false; }
  /// Returns the samples to prepare for a unit.
  virtual std::vector<SampleTicket> TicketsOf(const FeedUnit& /*unit*/) { return {}; }
  /// The source must outlive the result.
  virtual std::unique_ptr<SampleWork> Begin(const SampleTicket& ticket) const;
  /// Does all phases.
  Buffer Prepare(const SampleTicket& ticket) const;
  /// Returns whether `sample`, which a feed machine has prepared, may be used. A worker of the job must
  /// prepare it instead if parts of it could not be read. Throws std::runtime_error if it is not the
  /// sample of the ticket.
  virtual bool MayUse(const SampleTicket& ticket, const Buffer& sample) const;
  /// "data/train.json: row 7 (id "a7")", for messages.
  virtual std::string NameOf(const SampleTicket& ticket) const {
    return "row " + std::to_string(ticket.row);
  }
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
