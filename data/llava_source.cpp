#include "data/llava_source.hpp"

#include <algorithm>
#include <stdexcept>

#include "data/field_items.hpp"
#include "data/sample_order.hpp"
#include "files/sha256.hpp"
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

/// Throws DataError if `counted` has rows and none has an answer.
void RequireAnswers(const CountedSet& counted, std::int64_t context) {
  const bool any = std::ranges::any_of(counted.num_labels, [](std::int64_t n) { return n > 0; });
  if (any || counted.set.rows.empty()) return;
  throw DataError(counted.set.file +
                  ": expected answers to learn from, no row has one within the context of " +
                  std::to_string(context) + " tokens");
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

LlavaSource::LlavaSource(const Config& config, FileDepth files, FaultPolicy policy)
    : config_(config),
      policy_(policy),
      encoders_(DataEncoders(config_)),
      format_(FormatOf(config_)) {
  FaultTally faults(policy);
  train_ = CountSet(config_.data.train, format_, files, faults.For(config_.data.train));
  if (!config_.data.held_out.empty()) {
    held_out_ = CountSet(config_.data.held_out, format_, files, faults.For(config_.data.held_out));
  }
  faults.Require();
  for (const CountedSet* counted : {&train_, &held_out_}) {
    const std::string& file = counted == &train_ ? config_.data.train : config_.data.held_out;
    if (!file.empty() && counted->set.rows.empty()) {
      throw DataError(file + ": expected at least one row, found none");
    }
    faults.RequireUsedRow(file, std::ssize(counted->set.rows));
  }
  RequireAnswers(train_, format_.context);
  RequireAnswers(held_out_, format_.context);
  train_.skipped = SkippedRows(faults.RowsOf(config_.data.train), train_size());
  held_out_.skipped = SkippedRows(faults.RowsOf(config_.data.held_out), held_out_size());
  skipped_lines_ = faults.SkippedLines();
  order_ = std::make_unique<const BatchOrder>(config_);
  if (config_.data.packing) AddPackOrders();
}

void LlavaSource::TakeLayouts(const Config& config) {
  config_ = config;
  encoders_ = DataEncoders(config_);
  order_ = std::make_unique<const BatchOrder>(config_);
}

std::string LlavaSource::OrderDigest() const {
  const bool grouped = config_.data.group_by == GroupBy::kModalityLength;
  if (!grouped && !config_.data.packing) return "";
  std::string text = std::to_string(format_.context);
  for (const RowForm& row : RowForms()) {
    text += " " + std::to_string(row.length) + ":" + std::to_string(row.fields);
  }
  return "-" + Sha256Of(text).substr(0, 16);
}

std::vector<RowForm> LlavaSource::RowForms() const {
  std::vector<RowForm> rows;
  for (std::int64_t row = 0; row < train_size(); ++row) {
    // A skipped row is drawn as the one that replaces it.
    const auto used = static_cast<std::size_t>(train_.skipped.Substitute(row));
    RowForm& form = rows.emplace_back(RowForm{0, train_.num_tokens[used]});
    const auto& files = train_.set.rows[used].files;
    for (std::size_t field = 0; field < files.size(); ++field) {
      if (!files[field].empty()) form.fields |= std::uint64_t{1} << field % 64;
    }
  }
  return rows;
}

const GroupedOrder& LlavaSource::GroupedBy(std::int64_t group) const {
  const std::lock_guard lock(mutex_);
  auto& order = grouped_[group];
  if (order == nullptr) {
    order = std::make_unique<const GroupedOrder>(config_.run.seed, group, RowForms());
  }
  return *order;
}

std::shared_ptr<const Inputs> LlavaSource::Load(const std::string& module, int dp,
                                                const Round& round, std::int64_t unit) {
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
  if (!reads_text) {
    inputs->table = EncoderRows(samples, own, CutsRowsOf(config_, module));
    LoadItems(round, samples, own, *inputs);
    return inputs;
  }
  FillText(samples, format_.tokenizer->pad(), PadsRows(config_, *found), *inputs);
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    if (config_.FindEdge(encoders_[i]->name, module) == nullptr) continue;
    AddEdge(samples, i, *inputs);
    if (encoders_[i]->inline_in == module) LoadItems(round, samples, i, *inputs);
  }
  return inputs;
}

RoundCounts LlavaSource::Count(const Round& round) {
  const CountedSet& counted = SetOf(round);
  const std::int64_t num_samples = config_.samples_per_microbatch() * round.microbatches;
  RoundCounts total;
  for (std::int64_t k = 0; k < num_samples; ++k) {
    for (const std::int64_t row : DrawnRows(round, k)) {
      if (row < 0) continue;
      total.labels += counted.num_labels[static_cast<std::size_t>(row)];
      total.tokens += counted.num_tokens[static_cast<std::size_t>(row)];
      ++total.samples;
    }
  }
  return total;
}

std::vector<std::string> LlavaSource::NamesOf(const std::string& module, int dp, const Round& round,
                                              std::int64_t unit) const {
  std::vector<std::string> names;
  const ModuleConfig* const found = config_.Find(module);
  if (found == nullptr) return names;
  const UnitSamples held = SamplesOfUnit(config_, *found, dp, round.microbatches, unit);
  const std::int64_t first = held.first_microbatch * config_.samples_per_microbatch();
  for (const Interval& interval : held.samples) {
    for (std::int64_t n = interval.begin; n < interval.end; ++n) {
      for (const std::int64_t row : RowsIn(round, first + n)) {
        if (row >= 0) names.push_back(SetOf(round).set.rows[static_cast<std::size_t>(row)].id);
      }
    }
  }
  return names;
}

Inputs LlavaSource::LoadWhole(const Round& round) {
  const std::int64_t num_samples = config_.samples_per_microbatch() * round.microbatches;
  const Samples samples = Build(round, 0, {{0, num_samples}});
  Inputs inputs;
  FillText(samples, format_.tokenizer->pad(), /*padded=*/true, inputs);
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    AddEdge(samples, i, inputs);
    LoadItems(round, samples, i, inputs);
  }
  return inputs;
}

std::vector<std::vector<StepShape>> LlavaSource::PlacedShapesOf(const Round& round) const {
  const CountedSet& counted = SetOf(round);
  const std::int64_t num_samples = config_.samples_per_microbatch() * round.microbatches;
  std::vector<std::vector<StepShape>> places;
  for (std::int64_t k = 0; k < num_samples; ++k) {
    auto& shapes = places.emplace_back();
    for (const std::int64_t row : RowsIn(round, k)) {
      if (row >= 0) shapes.push_back(ShapeOf(counted, row));
    }
  }
  return places;
}

std::vector<StepShape> LlavaSource::ShapesOf(const Round& round) const {
  std::vector<StepShape> shapes;
  for (auto& place : PlacedShapesOf(round)) {
    shapes.insert(shapes.end(), place.begin(), place.end());
  }
  return shapes;
}

StepShape LlavaSource::ShapeOf(const CountedSet& counted, std::int64_t row) const {
  const auto at = static_cast<std::size_t>(row);
  StepShape shape{.samples = 1, .tokens = counted.num_tokens[at], .labels = counted.num_labels[at]};
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    shape.lengths[encoders_[i]->name] = counted.lengths[at * encoders_.size() + i];
  }
  return shape;
}

std::int64_t LlavaSource::CountSkipped(const Round& round) const {
  const CountedSet& counted = SetOf(round);
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

std::string LlavaSource::SkippedText() const {
  const auto text = [](const CountedSet& counted) {
    return counted.skipped.count() == 0 ? "none" : counted.skipped.Text();
  };
  return text(train_) + " of data.train, " + text(held_out_) + " of data.held_out";
}

std::int64_t LlavaSource::DrawnRow(const Round& round, std::int64_t k) const {
  const std::int64_t size = std::ssize(SetOf(round).set.rows);
  if (!round.train) return k < size ? k : -1;
  if (config_.data.group_by != GroupBy::kModalityLength) return TrainRowAt(round.place + k);
  const Interval places{round.place, round.place + config_.global_batch()};
  return GroupedBy(round.group).RowsAt(places)->at(static_cast<std::size_t>(k));
}

std::int64_t LlavaSource::TrainRowAt(std::int64_t place) const {
  const std::int64_t size = train_size();
  return SampleOrder(config_.run.seed, place / size, place % size, size);
}

std::vector<std::int64_t> LlavaSource::PlacesIn(const Round& round, std::int64_t k) const {
  if (!round.train) return held_out_packs_->PlacesIn(k);
  return packs_->PlacesIn(round.place + k);
}

std::vector<std::int64_t> LlavaSource::RowsIn(const Round& round, std::int64_t k) const {
  const std::int64_t sample = order_->SampleAt(round, k, [&](std::int64_t i) {
    SampleTimes times = order_->step_order().TimesOf({});
    for (const std::int64_t row : DrawnRows(round, i)) {
      if (row < 0) continue;
      times += order_->step_order().TimesOf(ShapeOf(train_, row));
    }
    return times;
  });
  return DrawnRows(round, sample);
}

std::vector<std::int64_t> LlavaSource::DrawnRows(const Round& round, std::int64_t k) const {
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

void LlavaSource::AddPackOrders() {
  const auto tokens_of = [](const CountedSet& counted, std::int64_t row) {
    const bool used = row >= 0 && !counted.skipped.Contains(row);
    return used ? counted.num_tokens[static_cast<std::size_t>(row)] : 1;
  };
  packs_ = std::make_unique<const PackOrder>(
      format_.context, config_.data.pack_window, [this, tokens_of](std::int64_t place) {
        return tokens_of(train_, train_.skipped.Substitute(TrainRowAt(place)));
      });
  held_out_packs_ = std::make_unique<const PackOrder>(
      format_.context, config_.data.pack_window,
      [this, tokens_of](std::int64_t place) { return tokens_of(held_out_, place); },
      held_out_size());
}

std::int64_t LlavaSource::places_per_epoch() const {
  return packs_ ? packs_->NumPacks(train_size()) : num_used_rows();
}

std::int64_t LlavaSource::held_out_places() const {
  return held_out_packs_ ? held_out_packs_->NumPacks(held_out_size()) : held_out_size();
}

std::int64_t LlavaSource::RowOf(const Round& round, std::int64_t k) const {
  const std::int64_t row = DrawnRow(round, k);
  const SkippedRows& skipped = SetOf(round).skipped;
  if (!round.train) return skipped.Contains(row) ? -1 : row;
  return skipped.Substitute(row);
}

LlavaSource::Samples LlavaSource::Build(const Round& round, std::int64_t first,
                                        const std::vector<Interval>& numbers) const {
  const LlavaSet& set = SetOf(round).set;
  Samples samples;
  for (const Interval& interval : numbers) {
    for (std::int64_t n = interval.begin; n < interval.end; ++n) {
      std::int64_t number = n * config_.most_in_pack();
      for (const std::int64_t row : RowsIn(round, first + n)) {
        samples.push_back(
            {number++, row < 0
                           ? EmptySample(format_)
                           : BuildSample(set, set.rows[static_cast<std::size_t>(row)], format_)});
      }
    }
  }
  return samples;
}

LlavaSource::Samples LlavaSource::SamplesOf(const ModuleConfig& module, int dp, const Round& round,
                                            std::int64_t unit) const {
  const bool windows = ColocatedEdge(config_, module) != nullptr;
  CheckIndex(module.name, windows ? "window" : "microbatch", unit,
             UnitLength(config_, module).In(round.microbatches).count);
  const UnitSamples held = SamplesOfUnit(config_, module, dp, round.microbatches, unit);
  return Build(round, held.first_microbatch * config_.samples_per_microbatch(), held.samples);
}

void LlavaSource::AddEdge(const Samples& samples, std::size_t encoder, Inputs& inputs) const {
  const std::string& name = encoders_[encoder]->name;
  const std::int64_t num_tokens = inputs.tokens.shape()[1];
  inputs.positions[name] = InBatch(samples, &Sample::positions, encoder, num_tokens);
  if (encoders_[encoder]->model->tile_side() > 0) {
    inputs.newlines[name] = InBatch(samples, &Sample::newlines, encoder, num_tokens);
  }
  inputs.expected[name] = EncoderRows(samples, encoder, CutsRowsOf(config_, name));
}

void LlavaSource::LoadItems(const Round& round, const Samples& samples, std::size_t encoder,
                            Inputs& inputs) const {
  const LlavaSet& set = SetOf(round).set;
  const ItemFormat& format = format_.items[encoder];
  std::vector<std::string> files;
  std::vector<const LlavaRow*> rows;  // of each file
  for (const NumberedSample& each : samples) {
    if (each.sample.row == nullptr) continue;
    for (const std::string& file : each.sample.row->files[encoder]) {
      files.push_back(set.PathOf(file));
      rows.push_back(each.sample.row);
    }
  }
  const auto failed = [&](std::size_t file, const std::runtime_error& error, bool has_length) {
    const DataFault fault = rows[file]->Fault(FaultKind::kItem, error.what());
    if (!policy_.skip || !has_length) throw FaultError(set.file, fault);
    inputs.replaced.push_back(
        {round.train, rows[file]->index, files[file],
         FaultLine(set.file, fault) + "; replaced by " + format.preprocessor->ZerosName()});
  };
  inputs.fields[encoders_[encoder]->name] = ReadItems(format, files, failed);
}

}  // namespace troupe
