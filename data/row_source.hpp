// The inputs of every module of a run, sharded by the module's layout.
//
// Sample k of a training round, k in [0, global batch), is the row at place Round::place + k of the
// endless shuffled order, or with data.group_by row k of these places in data/order/grouped_order.hpp. With
// data.order = "balanced" these samples change places (modules/batch_order.hpp). Sample k of an
// evaluation round is row k of the held-out file, and empty beyond its end. In training, the next used
// row of the file replaces a skipped row (data.on_error); in an evaluation no row does. Microbatch u
// holds samples [u * N, (u + 1) * N). The rows of a step thus depend on the seed and its places, never
// on a layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "data/assemble.hpp"
#include "data/digest.hpp"
#include "data/fault_tally.hpp"
#include "data/order/grouped_order.hpp"
#include "data/order/mixture.hpp"
#include "data/order/pack_order.hpp"
#include "data/order/shard_order.hpp"
#include "data/row_set.hpp"
#include "data/sample.hpp"
#include "kinds/work.hpp"
#include "layout/route.hpp"
#include "modules/batch_order.hpp"
#include "modules/input_source.hpp"

namespace troupe {

/// Called as files are indexed, with what they are and how far it has come.
using IndexPrinter = std::function<void(const std::string& files, const IndexProgress& progress)>;

/// The rows of a set, and those that are left out.
struct UsedSet {
  RowSet rows;
  SkippedRows skipped;
};

/// Returns how a run with this configuration opens its sets. `files`: the depth of checks.
SetTerms TermsOf(const Config& config, const SampleFormat& format, FileDepth files);
/// The depth to which a run checks the items of files that it indexes.
inline constexpr FileDepth kRunDepth = FileDepth::kHeader;

/// Thread-safe.
class RowSource : public InputSource {
 public:
  /// Opens both sets. Checks every row of files that have no index yet, and their items as `files` says.
  /// Throws DataError with the first few faults if a policy does not tolerate them, or if no row is left.
  /// Where a policy does, zeros replace an item that later fails to decode. `common` replaces the
  /// configuration's policy of sources that state none.
  explicit RowSource(const Config& config, FileDepth files = FileDepth::kNone,
                     const std::optional<FaultPolicy>& common = {}, const IndexPrinter& print = {});
  RowSource(const RowSource&) = delete;
  RowSource& operator=(const RowSource&) = delete;

  /// The unit of a language model is a microbatch. The unit of an encoder is a microbatch, or a
  /// window of them if it is colocated. Sample numbers are places in the microbatch, m * N + n in a
  /// window. With data.packing, sample i of the pack in place n is number n * Config::most_in_pack + i.
  std::shared_ptr<const Inputs> Assemble(const FeedUnit& unit,
                                         const std::vector<Buffer>& samples) override;
  bool prepares() const override { return true; }
  std::vector<SampleTicket> TicketsOf(const FeedUnit& unit) override;
  std::unique_ptr<SampleWork> Begin(const SampleTicket& ticket) const override;
  bool MayUse(const SampleTicket& ticket, const Buffer& sample) const override;
  std::string NameOf(const SampleTicket& ticket) const override;
  RoundCounts Count(const Round& round) override;
  void TakeLayouts(const Config& config) override;

  /// Returns the whole round as one unsharded batch, with the items and positions of every encoder,
  /// for the reference of `troupe verify`. Sample numbers are k.
  Inputs LoadWhole(const Round& round);

  /// Returns the rows of the samples of a round, by place: one each, or those of a pack; -1 for a sample
  /// that only fills a place.
  std::vector<std::vector<std::int64_t>> PlacedRowsOf(const Round& round) const;
  const RowSet& rows(bool train) const { return (train ? train_ : held_out_).rows; }
  bool IsSkipped(bool train, std::int64_t row) const {
    return (train ? train_ : held_out_).skipped.Contains(row);
  }
  /// Returns the shape of each sample of the round, without padding, by place: one each, or those of a
  /// pack; none beyond the end of a list.
  std::vector<std::vector<StepShape>> PlacedShapesOf(const Round& round) const;
  /// Returns the same as one list.
  std::vector<StepShape> ShapesOf(const Round& round) const;

  /// Returns how even data.order = "balanced" makes the loads of a training round; none otherwise.
  std::optional<StepBalance> BalanceOf(const Round& round) const;

  /// Returns the number of the round's samples whose row is skipped. In training another row
  /// replaces each of them; in an evaluation none does.
  std::int64_t CountSkipped(const Round& round) const;
  /// Whether rows or files that cannot be used may be left out or replaced.
  bool tolerates_faults() const;
  /// Throws std::runtime_error if skipped rows and `replaced` items are more than a skip_limit.
  void RequireWithinLimits(const std::set<ReplacedItem>& replaced) const;
  /// Returns the rows that data.on_error skips: "3, 8 of data.train, none of data.held_out".
  std::string SkippedText() const;
  /// Returns a line for each of the first few skipped rows, and one with the number of all.
  /// Empty if none is skipped.
  const std::vector<std::string>& skipped_lines() const { return skipped_lines_; }

  /// Returns all that turns a row into a sample (data/digest.hpp).
  std::string FormatText() const { return FormatLines(config_, format_->context); }
  /// Returns the window of the pack at a place of training; all 0 without data.packing.
  PackWindow WindowAt(std::int64_t place) const;
  /// Call before training resumes in `window` or a later one.
  void BeginAt(const PackWindow& window);
  /// Returns a digest of the training rows and of what else their order depends on.
  std::string TrainDigest() const;
  /// Returns a digest of both sets and what is known of each row: 16 digits each.
  std::string RowsDigest() const {
    return train_.rows.facts_digest() + " " + held_out_.rows.facts_digest();
  }
  /// Returns the places of a step that one epoch fills, and an evaluation: rows, or packs of them.
  std::int64_t places_per_epoch() const;
  std::int64_t held_out_places() const;

  std::int64_t train_size() const { return train_.rows.num_rows(); }
  /// Returns the number of training rows that are not skipped.
  std::int64_t num_used_rows() const { return train_size() - train_.skipped.count(); }
  /// Returns the number of training rows that are longer than the context and lose their end.
  std::int64_t num_cut_rows() const { return train_.rows.sums().cut; }
  std::int64_t held_out_size() const { return held_out_.rows.num_rows(); }

 private:
  using Samples = std::vector<NumberedSample>;

  /// Returns the training row at a place, with data.group_by. It may replace a skipped one.
  RowForm FormAt(std::int64_t place) const;
  /// Returns the order of the training rows that data.group_by asks for, with groups of this size.
  const GroupedOrder& GroupedBy(std::int64_t group) const;
  const UsedSet& SetOf(const Round& round) const { return round.train ? train_ : held_out_; }
  /// Returns the module of a unit. Throws std::invalid_argument unless it reads data and the unit exists.
  const ModuleConfig& CheckedModule(const FeedUnit& unit) const;
  /// Returns the encoders whose items a module reads, as in SampleTicket.
  std::uint64_t FieldsOf(const ModuleConfig& module) const;
  SampleTicket TicketOf(bool train, std::int64_t row, std::uint64_t fields) const;
  /// Returns the row of sample k in the order, -1 beyond the end of the held-out file.
  std::int64_t DrawnRow(const Round& round, std::int64_t k) const;
  /// Returns the row that is used for sample k, -1 for none.
  std::int64_t RowOf(const Round& round, std::int64_t k) const;
  /// Returns the rows of the samples in place k of the round: of one, or with data.packing of a pack.
  std::vector<std::int64_t> RowsIn(const Round& round, std::int64_t k) const;
  /// The times of all samples in place k, before data.order moves them.
  SampleTimes TimesIn(const Round& round, std::int64_t k) const;
  /// The same before data.order moves samples.
  std::vector<std::int64_t> DrawnRows(const Round& round, std::int64_t k) const;
  StepShape ShapeOf(const UsedSet& set, std::int64_t row) const;
  /// The row of a place in the endless order of training.
  std::int64_t TrainRowAt(std::int64_t place) const;
  /// With data.packing, the places of the order that the pack in place k of the round has.
  std::vector<std::int64_t> PlacesIn(const Round& round, std::int64_t k) const;
  UsedSet OpenSet(const std::string& key, const std::vector<std::string>& sources, FileDepth files,
                  const IndexPrinter& print);
  /// Returns the tally of the faults of a source: a place in data.sources, or -1 for data.held_out.
  FaultTally& TallyOf(std::int32_t source) { return tallies_[TallyIndex(source)]; }
  const FaultPolicy& PolicyOf(std::int32_t source) const {
    return tallies_[TallyIndex(source)].policy();
  }
  std::size_t TallyIndex(std::int32_t source) const {
    return source < 0 ? 0 : tally_of_source_.at(static_cast<std::size_t>(source));
  }
  void AddShardOrders();
  void AddPackOrders();
  /// Returns the samples `numbers` of the round's part that begins at sample `first`, numbered from
  /// there, not prepared.
  Samples Placed(const Round& round, std::int64_t first,
                 const std::vector<Interval>& numbers) const;
  Samples PlacedIn(const FeedUnit& unit) const;
  /// Returns what a worker has prepared. Throws std::runtime_error if it is not the sample of the row.
  PreparedSample Checked(bool train, std::int64_t row, std::uint64_t fields,
                         const Buffer& prepared) const;
  /// Fills in what workers have prepared of each, and empty samples.
  void Fill(bool train, std::uint64_t fields, const std::vector<Buffer>& prepared,
            Samples& samples) const;
  class RowWork;
  /// Adds positions and expected rows of one encoder for the text already in `inputs`.
  void AddEdge(const Samples& samples, std::size_t encoder, Inputs& inputs) const;

  Config config_;
  std::vector<FaultTally> tallies_;  ///< of the common policy, then of sources with their own
  std::vector<std::size_t> tally_of_source_;   ///< by source of the training set
  std::vector<const ModuleConfig*> encoders_;  ///< in the order of the config file
  std::shared_ptr<const SampleFormat> format_;
  UsedSet train_;
  UsedSet held_out_;
  std::unique_ptr<const Mixture> mixture_;
  std::vector<std::unique_ptr<const ShardOrder>> shard_orders_;  ///< by source
  mutable std::mutex mutex_;  ///< of grouped_ and packs_per_epoch_
  /// With data.group_by, by size of the groups: a run has one.
  mutable std::map<std::int64_t, std::unique_ptr<const GroupedOrder>> grouped_;
  std::unique_ptr<const BatchOrder> order_;
  mutable std::optional<std::int64_t> packs_per_epoch_;  ///< once it was asked for
  std::unique_ptr<PackOrder> packs_;                     ///< null without data.packing
  std::unique_ptr<const PackOrder> held_out_packs_;
  std::vector<std::string> skipped_lines_;
};

}  // namespace troupe
