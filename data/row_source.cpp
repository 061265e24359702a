#include "data/row_source.hpp"

#include <algorithm>
#include <stdexcept>

#include "configs/checks.hpp"
#include "data/digest.hpp"
#include "files/sha256.hpp"
#include "layout/mix_bits.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// Throws DataError if `rows` has rows and none has an answer.
void RequireAnswers(const RowSet& rows, bool replaces, const std::string& files,
                    std::int64_t context) {
  const RowSums& sums = rows.sums();
  const std::int64_t with_labels = sums.with_labels + (replaces ? sums.replaceable_with_labels : 0);
  if (with_labels > 0 || sums.rows == 0) return;
  throw DataError(files +
                  ": expected answers to learn from, no row has one within the context of " +
                  std::to_string(context) + " tokens");
}

}  // namespace

SetTerms TermsOf(const Config& config, const SampleFormat& format, FileDepth files) {
  return {.depth = files,
          .cache = config.data.cache,
          .cache_bytes = config.data.cache_gib << 30,
          .format_key = FormatKey(config, format.context)};
}

RowSource::RowSource(const Config& config, FileDepth files,
                     const std::optional<FaultPolicy>& common, const IndexPrinter& print)
    : config_(config),
      encoders_(DataEncoders(config_)),
      format_(std::make_shared<const SampleFormat>(FormatOf(config_))) {
  const DataConfig& data = config_.data;
  constexpr std::size_t kMostEncoders = 63;  // bits of SampleTicket::fields
  if (encoders_.size() > kMostEncoders) {
    throw DataError("expected at most " + std::to_string(kMostEncoders) +
                    " modules that read files, got " + std::to_string(encoders_.size()));
  }
  const FaultPolicy policy = common.value_or(troupe::PolicyOf(data));
  tallies_.emplace_back(policy);
  tally_of_source_.assign(data.train_paths().size(), 0);
  for (std::size_t i = 0; i < data.sources.size(); ++i) {
    const DataSource& source = data.sources[i];
    if (!source.on_error && !source.skip_limit) continue;
    tally_of_source_[i] = tallies_.size();
    tallies_.emplace_back(FaultPolicy{source.on_error.value_or(policy.on_error),
                                      source.skip_limit.value_or(policy.limit), SourceKey(i)});
  }
  train_ = OpenSet("data.train", data.train_paths(), files, print);
  if (!data.held_out.empty()) held_out_ = OpenSet("data.held_out", {data.held_out}, files, print);
  for (const FaultTally& faults : tallies_) faults.Require();
  for (UsedSet* set : {&train_, &held_out_}) {
    const bool train = set == &train_;
    const std::string name = train ? data.train_name() : data.held_out;
    if (name.empty()) continue;
    const std::vector<std::string> paths =
        train ? data.train_paths() : std::vector<std::string>{data.held_out};
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (!set->rows.sources()[i].empty()) continue;
      throw DataError(paths[i] + ": expected at least one row, found none");
    }
    const std::string key = train ? "data.train" : "data.held_out";
    std::set<std::int64_t> skipped;
    for (FaultTally& faults : tallies_) {
      faults.RequireUsedRow(key, paths, set->rows.sources());
      skipped.insert(faults.RowsOf(key).begin(), faults.RowsOf(key).end());
    }
    set->skipped = SkippedRows(skipped, set->rows.sources());
    const bool replaces = std::ranges::any_of(tallies_, [](const FaultTally& faults) {
      return faults.policy().on_error == OnError::kSubstitute;
    });
    RequireAnswers(set->rows, replaces, name, format_->context);
  }
  for (const FaultTally& faults : tallies_) {
    for (std::string& line : faults.SkippedLines()) skipped_lines_.push_back(std::move(line));
  }
  order_ = std::make_unique<const BatchOrder>(config_);
  AddShardOrders();
  if (data.packing) AddPackOrders();
}

UsedSet RowSource::OpenSet(const std::string& key, const std::vector<std::string>& sources,
                           FileDepth files, const IndexPrinter& print) {
  SetTerms terms = TermsOf(config_, *format_, files);
  if (print) {
    terms.progress = [&](const IndexProgress& progress) { print(Listed(sources), progress); };
  }
  const bool train = key == "data.train";
  UsedSet set;
  set.rows = RowSet(sources, format_, terms, [&](const DataFault& fault, const FaultPlace& place) {
    TallyOf(train ? static_cast<std::int32_t>(place.source) : -1)
        .Add(key, place.file, place.first_row, fault);
  });
  return set;
}

bool RowSource::tolerates_faults() const {
  return std::ranges::any_of(tallies_,
                             [](const FaultTally& faults) { return faults.policy().tolerates(); });
}

void RowSource::RequireWithinLimits(const std::set<ReplacedItem>& replaced) const {
  std::vector<std::vector<const ReplacedItem*>> items(tallies_.size());
  for (const ReplacedItem& item : replaced) {
    if (item.source < std::ssize(tally_of_source_)) items[TallyIndex(item.source)].push_back(&item);
  }
  for (std::size_t i = 0; i < tallies_.size(); ++i) {
    if (!tallies_[i].policy().tolerates() || items[i].empty()) continue;
    tallies_[i].RequireWithin(std::ssize(items[i]), items[i].back()->line);
  }
}

void RowSource::AddShardOrders() {
  std::vector<double> weights;
  for (std::size_t i = 0; i < train_.rows.sources().size(); ++i) {
    const Interval& rows = train_.rows.sources()[i];
    const auto& stated = config_.data.sources;
    weights.push_back(stated.empty() || !stated[i].weight ? static_cast<double>(rows.size())
                                                          : *stated[i].weight);
    // A run with one source has the order that it had before there were several.
    const std::uint64_t seed = i == 0 ? config_.run.seed : MixBits(config_.run.seed ^ MixBits(i));
    shard_orders_.push_back(std::make_unique<const ShardOrder>(seed, train_.rows.SizesOf(i),
                                                               config_.data.shuffle_shards));
  }
  mixture_ = std::make_unique<const Mixture>(weights);
}

void RowSource::TakeLayouts(const Config& config) {
  config_ = config;
  encoders_ = DataEncoders(config_);
  order_ = std::make_unique<const BatchOrder>(config_);
}

std::string RowSource::TrainDigest() const {
  // Lengths decide which samples share a step.
  const bool grouped = config_.data.group_by == GroupBy::kModalityLength;
  const bool by_length = grouped || config_.data.packing;
  std::string text = (by_length ? train_.rows.facts_digest() : train_.rows.digest()) + " " +
                     std::to_string(config_.data.shuffle_shards);
  for (const std::int64_t share : mixture_->shares()) text += " " + std::to_string(share);
  if (grouped) text += " windows of " + std::to_string(GroupTerms().window);
  // Packs and groups are made of the rows that replace skipped ones.
  if (by_length && train_.skipped.count() > 0) {
    text += " " + train_.skipped.Text(static_cast<std::size_t>(train_.skipped.count()));
  }
  return Sha256Of(text).substr(0, train_.rows.digest().size());
}

RowForm RowSource::FormAt(std::int64_t place) const {
  RowForm form{.row = train_.skipped.Substitute(TrainRowAt(place))};
  const RowFacts facts = train_.rows.FactsOf(form.row);
  form.length = facts.tokens;
  for (std::size_t field = 0; field < facts.lengths.size(); ++field) {
    if (facts.lengths[field] > 0) form.fields |= std::uint64_t{1} << field;
  }
  return form;
}

const GroupedOrder& RowSource::GroupedBy(std::int64_t group) const {
  const std::lock_guard lock(mutex_);
  auto& order = grouped_[group];
  if (order == nullptr) {
    order = std::make_unique<const GroupedOrder>(
        GroupTerms{config_.run.seed, group, train_size(),
                   [this](std::int64_t place) { return FormAt(place); }});
  }
  return *order;
}

RoundCounts RowSource::Count(const Round& round) {
  const RowSet& rows = SetOf(round).rows;
  const std::int64_t num_samples = config_.samples_per_microbatch() * round.microbatches;
  RoundCounts total;
  for (std::int64_t k = 0; k < num_samples; ++k) {
    for (const std::int64_t row : DrawnRows(round, k)) {
      if (row < 0) continue;
      const RowFacts facts = rows.FactsOf(row);
      total.labels += facts.labels;
      total.tokens += facts.tokens;
      ++total.samples;
    }
  }
  return total;
}

std::vector<std::vector<StepShape>> RowSource::PlacedShapesOf(const Round& round) const {
  const UsedSet& set = SetOf(round);
  std::vector<std::vector<StepShape>> places;
  for (const auto& rows : PlacedRowsOf(round)) {
    auto& shapes = places.emplace_back();
    for (const std::int64_t row : rows) {
      if (row >= 0) shapes.push_back(ShapeOf(set, row));
    }
  }
  return places;
}

std::vector<std::vector<std::int64_t>> RowSource::PlacedRowsOf(const Round& round) const {
  const std::int64_t num_samples = config_.samples_per_microbatch() * round.microbatches;
  std::vector<std::vector<std::int64_t>> places;
  for (std::int64_t k = 0; k < num_samples; ++k) places.push_back(RowsIn(round, k));
  return places;
}

std::vector<StepShape> RowSource::ShapesOf(const Round& round) const {
  std::vector<StepShape> shapes;
  for (auto& place : PlacedShapesOf(round)) {
    shapes.insert(shapes.end(), place.begin(), place.end());
  }
  return shapes;
}

StepShape RowSource::ShapeOf(const UsedSet& set, std::int64_t row) const {
  const RowFacts facts = set.rows.FactsOf(row);
  StepShape shape{.samples = 1, .tokens = facts.tokens, .labels = facts.labels};
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    shape.lengths[encoders_[i]->name] = facts.lengths[i];
  }
  return shape;
}

std::int64_t RowSource::CountSkipped(const Round& round) const {
  const UsedSet& counted = SetOf(round);
  if (counted.skipped.count() == 0) return 0;
  const std::int64_t num_samples = config_.samples_per_microbatch() * round.microbatches;
  std::int64_t total = 0;
  for (std::int64_t k = 0; k < num_samples; ++k) {
    if (!config_.data.packing) {
      if (counted.skipped.Contains(DrawnRow(round, k))) ++total;
      continue;
    }
    for (const std::int64_t place : PlacesIn(round, k)) {
      const std::int64_t row = round.train ? TrainRowAt(place) : place;
      if (counted.skipped.Contains(row)) ++total;
    }
  }
  return total;
}

std::string RowSource::SkippedText() const {
  const auto text = [](const UsedSet& counted) {
    return counted.skipped.count() == 0 ? "none" : counted.skipped.Text();
  };
  return text(train_) + " of data.train, " + text(held_out_) + " of data.held_out";
}

std::int64_t RowSource::DrawnRow(const Round& round, std::int64_t k) const {
  const std::int64_t size = SetOf(round).rows.num_rows();
  if (!round.train) return k < size ? k : -1;
  if (config_.data.group_by != GroupBy::kModalityLength) return TrainRowAt(round.place + k);
  const Interval places{round.place, round.place + config_.global_batch()};
  return GroupedBy(round.group).RowsAt(places)->at(static_cast<std::size_t>(k));
}

std::int64_t RowSource::TrainRowAt(std::int64_t place) const {
  const auto [source, draw] = mixture_->At(place);
  const auto at = static_cast<std::size_t>(source);
  return train_.rows.sources()[at].begin + shard_orders_[at]->RowAt(draw);
}

std::vector<std::int64_t> RowSource::PlacesIn(const Round& round, std::int64_t k) const {
  if (!round.train) return held_out_packs_->PlacesIn(k);
  return packs_->PlacesIn(round.place + k);
}

SampleTimes RowSource::TimesIn(const Round& round, std::int64_t k) const {
  SampleTimes times = order_->step_order().TimesOf({});
  for (const std::int64_t row : DrawnRows(round, k)) {
    if (row >= 0) times += order_->step_order().TimesOf(ShapeOf(train_, row));
  }
  return times;
}

std::vector<std::int64_t> RowSource::RowsIn(const Round& round, std::int64_t k) const {
  return DrawnRows(round,
                   order_->SampleAt(round, k, [&](std::int64_t i) { return TimesIn(round, i); }));
}

std::optional<StepBalance> RowSource::BalanceOf(const Round& round) const {
  return order_->BalanceOf(round, [&](std::int64_t i) { return TimesIn(round, i); });
}

std::vector<std::int64_t> RowSource::DrawnRows(const Round& round, std::int64_t k) const {
  if (!config_.data.packing) return {RowOf(round, k)};
  std::vector<std::int64_t> rows;
  for (const std::int64_t place : PlacesIn(round, k)) {
    rows.push_back(round.train ? train_.skipped.Substitute(TrainRowAt(place))
                   : held_out_.skipped.Contains(place) ? -1
                                                       : place);
  }
  if (rows.empty()) rows.push_back(-1);
  return rows;
}

void RowSource::AddPackOrders() {
  const auto tokens_of = [](const UsedSet& set, std::int64_t row) {
    const bool used = row >= 0 && !set.skipped.Contains(row);
    return used ? set.rows.FactsOf(row).tokens : 1;
  };
  packs_ = std::make_unique<PackOrder>(
      format_->context, config_.data.pack_window, [this, tokens_of](std::int64_t place) {
        return tokens_of(train_, train_.skipped.Substitute(TrainRowAt(place)));
      });
  held_out_packs_ = std::make_unique<const PackOrder>(
      format_->context, config_.data.pack_window,
      [this, tokens_of](std::int64_t place) { return tokens_of(held_out_, place); },
      held_out_size());
}

PackWindow RowSource::WindowAt(std::int64_t place) const {
  return packs_ ? packs_->WindowOf(place) : PackWindow();
}

void RowSource::BeginAt(const PackWindow& window) {
  if (packs_) packs_->BeginAt(window);
}

std::int64_t RowSource::places_per_epoch() const {
  if (!packs_) return num_used_rows();
  const std::lock_guard lock(mutex_);
  if (!packs_per_epoch_) packs_per_epoch_ = packs_->NumPacks(train_size());
  return *packs_per_epoch_;
}

std::int64_t RowSource::held_out_places() const {
  return held_out_packs_ ? held_out_packs_->NumPacks(held_out_size()) : held_out_size();
}

std::int64_t RowSource::RowOf(const Round& round, std::int64_t k) const {
  const std::int64_t row = DrawnRow(round, k);
  const SkippedRows& skipped = SetOf(round).skipped;
  if (!round.train) return skipped.Contains(row) ? -1 : row;
  return skipped.Substitute(row);
}

}  // namespace troupe
