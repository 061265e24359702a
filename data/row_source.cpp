#include "data/row_source.hpp"

#include <algorithm>
#include <stdexcept>

#include "data/digest.hpp"
#include "data/field_items.hpp"
#include "files/sha256.hpp"
#include "layout/mix_bits.hpp"
#include "layout/text.hpp"
#include "plan/row_cuts.hpp"
#include "plan/unit_samples.hpp"

namespace troupe {
namespace {

/// Throws std::invalid_argument unless 0 <= value < limit.
void CheckIndex(const std::string& module, const char* what, std::int64_t value,
                std::int64_t limit) {
  if (value >= 0 && value < limit) return;
  throw std::invalid_argument(module + ": expected a " + what + " in [0, " + std::to_string(limit) +
                              "), got " + std::to_string(value));
}

/// Throws DataError if `rows` has rows and none has an answer.
void RequireAnswers(const RowSet& rows, const std::string& files, std::int64_t context) {
  if (rows.sums().with_labels > 0 || rows.num_rows() == 0) return;
  throw DataError(files +
                  ": expected answers to learn from, no row has one within the context of " +
                  std::to_string(context) + " tokens");
}

/// Throws FaultError if a sample differs from its index, on which all processes rely.
void RequireAsIndexed(const NumberedSample& built, const RowFacts& facts) {
  const Sample& sample = built.sample;
  if (std::ssize(sample.tokens) == facts.tokens && sample.num_labels() == facts.labels &&
      sample.lengths == facts.lengths) {
    return;
  }
  throw FaultError(built.stored->origin.file,
                   built.stored->row.Fault(FaultKind::kItem,
                                           "its images have other sizes than when it was indexed"));
}

/// Returns whether an end of an encoder's edges cuts rows.
bool CutsRowsOf(const Config& config, const std::string& encoder) {
  return std::ranges::any_of(config.edges, [&](const EdgeConfig& edge) {
    return edge.from == encoder && CutsRows(config, edge);
  });
}

/// Fills tokens, labels and content, [B, T] with T the longest sample (at least 1), padded; and the
/// table, with T rows per sample if the layers compute the padding, too.
void FillText(std::span<const NumberedSample> samples, std::int64_t pad, bool padded,
              Inputs& inputs) {
  std::size_t num_tokens = 1;
  for (const NumberedSample& each : samples) {
    num_tokens = std::max(num_tokens, each.sample.tokens.size());
  }
  const Shape shape = {std::ssize(samples), static_cast<std::int64_t>(num_tokens)};
  inputs.tokens = Buffer::Allocate(shape, DType::kInt64);
  inputs.labels = Buffer::Allocate(shape, DType::kInt64);
  inputs.content = Buffer::Zeros(shape, DType::kUInt8);
  std::fill_n(inputs.tokens.as<std::int64_t>(), NumElements(shape), pad);
  std::fill_n(inputs.labels.as<std::int64_t>(), NumElements(shape), kNoLabel);
  inputs.table = {};
  for (std::size_t b = 0; b < samples.size(); ++b) {
    const Sample& sample = samples[b].sample;
    const std::size_t begin = b * num_tokens;
    std::copy(sample.tokens.begin(), sample.tokens.end(), inputs.tokens.as<std::int64_t>() + begin);
    std::copy(sample.labels.begin(), sample.labels.end(), inputs.labels.as<std::int64_t>() + begin);
    std::copy(sample.content.begin(), sample.content.end(),
              inputs.content.as<std::uint8_t>() + begin);
    inputs.num_tokens += std::ssize(sample.tokens);
    inputs.table.samples.push_back(samples[b].number);
    inputs.table.rows.push_back(padded ? shape[1] : std::ssize(sample.tokens));
    inputs.table.lengths.push_back(std::ssize(sample.tokens));
  }
}

/// Returns the rows that each sample takes from encoder `encoder`; with their places if an end of the
/// edge cuts them.
RowTable EncoderRows(std::span<const NumberedSample> samples, std::size_t encoder, bool cut) {
  RowTable table;
  for (const NumberedSample& each : samples) {
    const std::vector<std::int64_t>& places = each.sample.positions[encoder];
    table.samples.push_back(each.number);
    table.rows.push_back(std::ssize(places));
    if (!cut) continue;
    table.lengths.push_back(std::ssize(each.sample.tokens));
    for (std::size_t row = 0; row < places.size(); ++row) {
      AppendRow(each.number, static_cast<std::int64_t>(row), places[row], table.runs);
    }
  }
  return table;
}

/// Returns `places` of every sample for encoder `encoder`: [n] int64, b * T + t with `num_tokens` = T.
/// A place of -1 stays.
Buffer InBatch(std::span<const NumberedSample> samples,
               std::vector<std::vector<std::int64_t>> Sample::*places, std::size_t encoder,
               std::int64_t num_tokens) {
  std::vector<std::int64_t> all;
  std::int64_t begin = 0;
  for (const NumberedSample& each : samples) {
    for (const std::int64_t t : (each.sample.*places)[encoder]) {
      all.push_back(t < 0 ? t : begin + t);
    }
    begin += num_tokens;
  }
  Buffer buffer = Buffer::Allocate({std::ssize(all)}, DType::kInt64);
  std::ranges::copy(all, buffer.as<std::int64_t>());
  return buffer;
}

}  // namespace

RowSource::RowSource(const Config& config, FileDepth files, FaultPolicy policy,
                     const IndexPrinter& print)
    : config_(config),
      policy_(policy),
      encoders_(DataEncoders(config_)),
      format_(std::make_shared<const SampleFormat>(FormatOf(config_))) {
  FaultTally faults(policy);
  const DataConfig& data = config_.data;
  train_ = OpenSet("data.train", data.train_paths(), files, faults, print);
  if (!data.held_out.empty()) {
    held_out_ = OpenSet("data.held_out", {data.held_out}, files, faults, print);
  }
  faults.Require();
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
    faults.RequireUsedRow(key, paths, set->rows.sources());
    set->skipped = SkippedRows(faults.RowsOf(key), set->rows.sources());
    RequireAnswers(set->rows, name, format_->context);
  }
  skipped_lines_ = faults.SkippedLines();
  order_ = std::make_unique<const BatchOrder>(config_);
  AddShardOrders();
  if (data.packing) AddPackOrders();
}

UsedSet RowSource::OpenSet(const std::string& key, const std::vector<std::string>& sources,
                           FileDepth files, FaultTally& faults, const IndexPrinter& print) const {
  SetTerms terms{.depth = files,
                 .cache = config_.data.cache,
                 .cache_bytes = config_.data.cache_gib << 30,
                 .format_key = FormatKey(config_, format_->context)};
  if (print) {
    terms.progress = [&](const IndexProgress& progress) { print(Listed(sources), progress); };
  }
  UsedSet set;
  set.rows = RowSet(sources, format_, terms,
                    [&](const DataFault& fault, const std::string& file, std::int64_t first_row) {
                      faults.Add(key, file, first_row, fault);
                    });
  return set;
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
  const bool by_length = config_.data.group_by == GroupBy::kModalityLength || config_.data.packing;
  std::string text = (by_length ? train_.rows.facts_digest() : train_.rows.digest()) + " " +
                     std::to_string(config_.data.shuffle_shards);
  for (const std::int64_t share : mixture_->shares()) text += " " + std::to_string(share);
  return Sha256Of(text).substr(0, train_.rows.digest().size());
}

std::vector<RowForm> RowSource::RowForms() const {
  std::vector<RowForm> rows;
  for (std::int64_t row = 0; row < train_size(); ++row) {
    // A skipped row is drawn as the one that replaces it.
    const RowFacts facts = train_.rows.FactsOf(train_.skipped.Substitute(row));
    RowForm& form = rows.emplace_back(RowForm{0, facts.tokens});
    for (std::size_t field = 0; field < facts.lengths.size(); ++field) {
      if (facts.lengths[field] > 0) form.fields |= std::uint64_t{1} << field % 64;
    }
  }
  return rows;
}

const GroupedOrder& RowSource::GroupedBy(std::int64_t group) const {
  const std::lock_guard lock(mutex_);
  auto& order = grouped_[group];
  if (order == nullptr) {
    order = std::make_unique<const GroupedOrder>(config_.run.seed, group, RowForms());
  }
  return *order;
}

std::shared_ptr<const Inputs> RowSource::Load(const std::string& module, int dp, const Round& round,
                                              std::int64_t unit) {
  const ModuleConfig* found = config_.Find(module);
  if (found == nullptr) throw std::invalid_argument(module + ": no such module");
  CheckIndex(module, "replica", dp, GridOf(config_, *found).layout().dp);
  const auto own =
      static_cast<std::size_t>(std::ranges::find(encoders_, found) - encoders_.begin());
  const bool reads_text = found->model->text().has_value();
  if (!reads_text && (own == encoders_.size() || found->inline_in)) {
    throw std::invalid_argument(module + ": expected a module that reads data by itself");
  }
  const Samples samples = SamplesOf(*found, dp, round, unit);
  auto inputs = std::make_shared<Inputs>();
  for (const NumberedSample& each : samples) {
    if (each.stored != nullptr) inputs->names.push_back(each.stored->row.id);
  }
  if (!reads_text) {
    inputs->table = EncoderRows(samples, own, CutsRowsOf(config_, module));
    LoadItems(round, samples, own, *inputs);
    return inputs;
  }
  FillText(samples, format_->tokenizer->pad(), PadsRows(config_, *found), *inputs);
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    if (config_.FindEdge(encoders_[i]->name, module) == nullptr) continue;
    AddEdge(samples, i, *inputs);
    if (encoders_[i]->inline_in == module) LoadItems(round, samples, i, *inputs);
  }
  return inputs;
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

Inputs RowSource::LoadWhole(const Round& round) {
  const std::int64_t num_samples = config_.samples_per_microbatch() * round.microbatches;
  const Samples samples = Build(round, 0, {{0, num_samples}});
  Inputs inputs;
  FillText(samples, format_->tokenizer->pad(), /*padded=*/true, inputs);
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    AddEdge(samples, i, inputs);
    LoadItems(round, samples, i, inputs);
  }
  return inputs;
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
  packs_ = std::make_unique<const PackOrder>(
      format_->context, config_.data.pack_window, [this, tokens_of](std::int64_t place) {
        return tokens_of(train_, train_.skipped.Substitute(TrainRowAt(place)));
      });
  held_out_packs_ = std::make_unique<const PackOrder>(
      format_->context, config_.data.pack_window,
      [this, tokens_of](std::int64_t place) { return tokens_of(held_out_, place); },
      held_out_size());
}

std::int64_t RowSource::places_per_epoch() const {
  return packs_ ? packs_->NumPacks(train_size()) : num_used_rows();
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

RowSource::Samples RowSource::Build(const Round& round, std::int64_t first,
                                    const std::vector<Interval>& numbers) const {
  const RowSet& rows = SetOf(round).rows;
  Samples samples;
  for (const Interval& interval : numbers) {
    for (std::int64_t n = interval.begin; n < interval.end; ++n) {
      std::int64_t number = n * config_.most_in_pack();
      for (const std::int64_t row : RowsIn(round, first + n)) {
        NumberedSample& sample = samples.emplace_back(NumberedSample{number++, {}});
        if (row < 0) {
          sample.sample = EmptySample(*format_);
          continue;
        }
        sample.stored = std::make_shared<const StoredRow>(rows.Read(row));
        sample.sample = BuildSample(sample.stored->origin, sample.stored->row, *format_);
        RequireAsIndexed(sample, rows.FactsOf(row));
      }
    }
  }
  return samples;
}

RowSource::Samples RowSource::SamplesOf(const ModuleConfig& module, int dp, const Round& round,
                                        std::int64_t unit) const {
  const bool windows = ColocatedEdge(config_, module) != nullptr;
  CheckIndex(module.name, windows ? "window" : "microbatch", unit,
             UnitLength(config_, module).In(round.microbatches).count);
  const UnitSamples held = SamplesOfUnit(config_, module, dp, round.microbatches, unit);
  return Build(round, held.first_microbatch * config_.samples_per_microbatch(), held.samples);
}

void RowSource::AddEdge(const Samples& samples, std::size_t encoder, Inputs& inputs) const {
  const std::string& name = encoders_[encoder]->name;
  const std::int64_t num_tokens = inputs.tokens.shape()[1];
  inputs.positions[name] = InBatch(samples, &Sample::positions, encoder, num_tokens);
  if (encoders_[encoder]->model->tile_side() > 0) {
    inputs.newlines[name] = InBatch(samples, &Sample::newlines, encoder, num_tokens);
  }
  inputs.expected[name] = EncoderRows(samples, encoder, CutsRowsOf(config_, name));
}

void RowSource::LoadItems(const Round& round, const Samples& samples, std::size_t encoder,
                          Inputs& inputs) const {
  const ItemFormat& format = format_->items[encoder];
  std::vector<ItemFile> files;
  std::vector<const StoredRow*> rows;  // of each file
  for (const NumberedSample& each : samples) {
    if (each.stored == nullptr) continue;
    const auto& [origin, row] = *each.stored;
    for (const std::string& file : row.files[encoder]) {
      files.push_back(row.ItemOf(origin, file));
      rows.push_back(each.stored.get());
    }
  }
  const auto failed = [&](std::size_t file, const std::runtime_error& error, bool has_length) {
    const auto& [origin, row] = *rows[file];
    const DataFault fault = row.Fault(FaultKind::kItem, error.what());
    if (!policy_.skip || !has_length) throw FaultError(origin.file, fault);
    inputs.replaced.push_back(
        {round.train, row.index, files[file].name,
         FaultLine(origin.file, fault) + "; replaced by " + format.preprocessor->ZerosName()});
  };
  inputs.fields[encoders_[encoder]->name] = ReadItems(format, files, failed);
}

}  // namespace troupe
