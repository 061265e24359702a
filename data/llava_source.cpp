#include "data/llava_source.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "data/sample_order.hpp"
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

}  // namespace

LlavaSource::LlavaSource(const Config& config, FileDepth files, FaultPolicy policy)
    : config_(config),
      policy_(policy),
      encoders_(DataEncoders(config_)),
      owned_(FormatOf(config_)) {
  FaultTally faults(policy);
  train_ = CountSet(config_.data.train, format_, files, faults.For(config_.data.train));
  if (!config_.data.held_out.empty()) {
    held_out_ = CountSet(config_.data.held_out, format_, files, faults.For(config_.data.held_out));
  }
  faults.Require();
  if (train_.set.rows.empty()) {
    throw DataError(config_.data.train + ": expected at least one row, found none");
  }
  RequireAnswers(train_);
  RequireAnswers(held_out_);
  train_.skipped = SkippedRows(faults.RowsOf(config_.data.train), train_size());
  held_out_.skipped = SkippedRows(faults.RowsOf(config_.data.held_out), held_out_size());
  skipped_lines_ = faults.SkippedLines();
}

void LlavaSource::RequireAnswers(const CountedSet& counted) const {
  const std::vector<LlavaRow>& rows = counted.set.rows;
  const bool any = std::any_of(counted.num_labels.begin(), counted.num_labels.end(),
                               [](std::int64_t count) { return count > 0; });
  if (any || rows.empty()) return;
  throw DataError(counted.set.file +
                  ": expected answers to learn from, no row has one within the context of " +
                  std::to_string(format_.context) + " tokens");
}

std::shared_ptr<const Inputs> LlavaSource::Load(const std::string& module, int dp,
                                                const Round& round, std::int64_t unit) {
  const ModuleConfig* found = config_.Find(module);
  if (found == nullptr) throw std::invalid_argument(module + ": no such module");
  CheckIndex(module, "replica", dp, GridOf(config_, *found).layout().dp);
  if (found->model->text()) {
    return std::make_shared<const Inputs>(LanguageInputs(*found, dp, round, unit));
  }
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    if (encoders_[i] != found || found->inline_in) continue;
    return std::make_shared<const Inputs>(EncoderInputs(i, dp, round, unit));
  }
  throw std::invalid_argument(module + ": expected a module that reads data by itself");
}

std::int64_t LlavaSource::CountValidTokens(const Round& round) {
  const CountedSet& counted = SetOf(round);
  const std::int64_t num_samples = config_.samples_per_microbatch() * round.microbatches;
  std::int64_t total = 0;
  for (std::int64_t k = 0; k < num_samples; ++k) {
    const std::int64_t row = RowOf(round, k);
    if (row < 0) continue;
    total += counted.num_labels[static_cast<std::size_t>(row)];
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
      const std::int64_t row = RowOf(round, first + n);
      if (row >= 0) names.push_back(SetOf(round).set.rows[static_cast<std::size_t>(row)].id);
    }
  }
  return names;
}

Inputs LlavaSource::LoadWhole(const Round& round) {
  const std::int64_t num_samples = config_.samples_per_microbatch() * round.microbatches;
  const Samples samples = BuildInterval(round, 0, {0, num_samples});
  Inputs inputs;
  FillText(samples, owned_.tokenizer->pad(), inputs);
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    AddEdge(samples, i, inputs);
    LoadItems(round, samples, i, inputs);
  }
  return inputs;
}

std::int64_t LlavaSource::CountSkipped(const Round& round) const {
  const CountedSet& counted = SetOf(round);
  if (counted.skipped.count() == 0) return 0;
  const std::int64_t num_samples = config_.samples_per_microbatch() * round.microbatches;
  std::int64_t total = 0;
  for (std::int64_t k = 0; k < num_samples; ++k) {
    if (counted.skipped.Contains(DrawnRow(round, k))) ++total;
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
  const std::int64_t place = round.step * config_.global_batch() + k;
  return SampleOrder(config_.run.seed, place / size, place % size, size);
}

std::int64_t LlavaSource::RowOf(const Round& round, std::int64_t k) const {
  const std::int64_t row = DrawnRow(round, k);
  const SkippedRows& skipped = SetOf(round).skipped;
  if (!round.train) return skipped.Contains(row) ? -1 : row;
  return skipped.Substitute(row);
}

Sample LlavaSource::BuildOne(const Round& round, std::int64_t k) const {
  const std::int64_t row = RowOf(round, k);
  if (row < 0) return EmptySample(format_);
  const LlavaSet& set = SetOf(round).set;
  return BuildSample(set, set.rows[static_cast<std::size_t>(row)], format_);
}

LlavaSource::Samples LlavaSource::BuildInterval(const Round& round, std::int64_t first,
                                                Interval interval) const {
  Samples samples;
  for (std::int64_t n = interval.begin; n < interval.end; ++n) {
    samples.push_back({n, BuildOne(round, first + n)});
  }
  return samples;
}

Inputs LlavaSource::LanguageInputs(const ModuleConfig& module, int dp, const Round& round,
                                   std::int64_t microbatch) const {
  const Samples samples = SamplesOf(module, dp, round, microbatch);
  Inputs inputs;
  FillText(samples, owned_.tokenizer->pad(), inputs);
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    const ModuleConfig& encoder = *encoders_[i];
    const bool joined =
        std::any_of(config_.edges.begin(), config_.edges.end(), [&](const EdgeConfig& edge) {
          return edge.from == encoder.name && edge.to == module.name;
        });
    if (!joined) continue;
    AddEdge(samples, i, inputs);
    if (encoder.inline_in != module.name) continue;
    LoadItems(round, samples, i, inputs);
  }
  return inputs;
}

Inputs LlavaSource::EncoderInputs(std::size_t encoder, int dp, const Round& round,
                                  std::int64_t unit) const {
  const Samples samples = SamplesOf(*encoders_[encoder], dp, round, unit);
  Inputs inputs;
  inputs.table = EncoderRows(samples, encoder);
  LoadItems(round, samples, encoder, inputs);
  return inputs;
}

LlavaSource::Samples LlavaSource::SamplesOf(const ModuleConfig& module, int dp, const Round& round,
                                            std::int64_t unit) const {
  const bool windows = ColocatedEdge(config_, module) != nullptr;
  CheckIndex(module.name, windows ? "window" : "microbatch", unit,
             UnitLength(config_, module).In(round.microbatches).count);
  const UnitSamples held = SamplesOfUnit(config_, module, dp, round.microbatches, unit);
  Samples samples;
  for (const Interval& interval : held.samples) {
    const std::int64_t first = held.first_microbatch * config_.samples_per_microbatch();
    Samples part = BuildInterval(round, first, interval);
    samples.insert(samples.end(), part.begin(), part.end());
  }
  return samples;
}

void LlavaSource::AddEdge(const Samples& samples, std::size_t encoder, Inputs& inputs) const {
  const std::string& name = encoders_[encoder]->name;
  inputs.positions[name] = Positions(samples, encoder, inputs.tokens.shape()[1]);
  inputs.expected[name] = EncoderRows(samples, encoder);
}

void LlavaSource::LoadItems(const Round& round, const Samples& samples, std::size_t encoder,
                            Inputs& inputs) const {
  const LlavaSet& set = SetOf(round).set;
  const ItemFormat& format = format_.items[encoder];
  const auto for_each = [&](const auto& action) {
    for (const NumberedSample& each : samples) {
      if (each.sample.row == nullptr) continue;
      for (const std::string& file : each.sample.row->files[encoder]) {
        action(*each.sample.row, set.PathOf(file));
      }
    }
  };
  const auto fault = [&](const LlavaRow& row, const std::runtime_error& error) {
    return row.Fault(FaultKind::kItem, error.what());
  };
  FieldItems items;
  for_each([&](const LlavaRow& row, const std::string& file) {
    try {
      items.lengths.push_back(format.preprocessor->LengthOf(file));
    } catch (const std::runtime_error& error) {
      throw FaultError(set.file, fault(row, error));  // no item of unknown length can be replaced
    }
  });
  Shape shape = {std::accumulate(items.lengths.begin(), items.lengths.end(), std::int64_t{0})};
  shape.insert(shape.end(), format.row_shape.begin(), format.row_shape.end());
  items.values = Buffer::Allocate(std::move(shape), DType::kFloat32);
  auto length = items.lengths.begin();
  auto* next = items.values.as<float>();
  for_each([&](const LlavaRow& row, const std::string& file) {
    const auto size = static_cast<std::size_t>(*length++ * NumElements(format.row_shape));
    try {
      format.preprocessor->Read(file, {next, size});
    } catch (const std::runtime_error& error) {
      if (!policy_.skip) throw FaultError(set.file, fault(row, error));
      std::fill_n(next, size, 0.0F);
      inputs.replaced.push_back({round.train, row.index, file,
                                 FaultLine(set.file, fault(row, error)) + "; replaced by " +
                                     format.preprocessor->ZerosName()});
    }
    next += size;
  });
  inputs.fields[encoders_[encoder]->name] = std::move(items);
}

}  // namespace troupe
