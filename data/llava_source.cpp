#include "data/llava_source.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "data/image.hpp"
#include "data/sample_order.hpp"
#include "modules/unit_samples.hpp"

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

LlavaSource::LlavaSource(const Config& config) : config_(config) {
  FindEncoders();
  tokenizer_ = MakeTokenizer(config_.data.tokenizer, static_cast<int>(encoders_.size()));
  format_.tokenizer = tokenizer_.get();
  FitLanguageModels();
  ReadSet(config_.data.train, train_);
  if (train_.set.rows.empty()) {
    throw DataError(config_.data.train + ": expected at least one row, found none");
  }
  if (!config_.data.held_out.empty()) ReadSet(config_.data.held_out, held_out_);
}

void LlavaSource::FindEncoders() {
  for (const ModuleConfig& module : config_.modules) {
    if (module.kind != ModuleKind::kVit || !module.input) continue;
    encoders_.push_back(&module);
    format_.encoders.push_back(*module.input);
    format_.rows_per_image.push_back(module.vit.rows_per_image());
  }
}

void LlavaSource::FitLanguageModels() {
  // Two language models share one text, so that the valid tokens of a round are one number: the
  // shorter context cuts for both.
  format_.context = std::numeric_limits<std::int64_t>::max();
  for (const ModuleConfig& module : config_.modules) {
    if (module.kind != ModuleKind::kLlama) continue;
    format_.context = std::min(format_.context, module.llama.context);
    if (module.llama.vocab >= tokenizer_->size()) continue;
    throw DataError("modules." + module.name + ".vocab: expected at least " +
                    std::to_string(tokenizer_->size()) + " for tokenizer \"" +
                    config_.data.tokenizer + "\" with " + std::to_string(encoders_.size()) +
                    " placeholders, got " + std::to_string(module.llama.vocab));
  }
}

void LlavaSource::ReadSet(const std::string& file, CountedSet& into) const {
  into.set = ReadLlava(file, format_.encoders);
  for (const LlavaRow& row : into.set.rows) {
    const Sample sample = BuildSample(into.set, row, format_);
    into.num_labels.push_back(sample.num_labels());
    if (sample.cut) ++into.num_cut;
  }
  const bool any = std::any_of(into.num_labels.begin(), into.num_labels.end(),
                               [](std::int64_t count) { return count > 0; });
  if (!any && !into.set.rows.empty()) {
    throw DataError(file +
                    ": expected answers to learn from, no row has one within the context of " +
                    std::to_string(format_.context) + " tokens");
  }
}

std::shared_ptr<const Inputs> LlavaSource::Load(const std::string& module, int dp,
                                                const Round& round, std::int64_t unit) {
  const ModuleConfig* found = config_.Find(module);
  if (found == nullptr) throw std::invalid_argument(module + ": no such module");
  CheckIndex(module, "replica", dp, GridOf(config_, *found).layout().dp);
  if (found->kind == ModuleKind::kLlama) {
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

Inputs LlavaSource::LoadWhole(const Round& round) {
  const std::int64_t num_samples = config_.samples_per_microbatch() * round.microbatches;
  const Samples samples = BuildInterval(round, 0, {0, num_samples});
  Inputs inputs;
  FillText(samples, tokenizer_->pad(), inputs);
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    AddEdge(samples, i, inputs);
    inputs.images[encoders_[i]->name] = LoadImages(SetOf(round).set, samples, i);
  }
  return inputs;
}

std::int64_t LlavaSource::RowOf(const Round& round, std::int64_t k) const {
  const std::int64_t size = std::ssize(SetOf(round).set.rows);
  if (!round.train) return k < size ? k : -1;
  const std::int64_t place = round.step * config_.global_batch() + k;
  return SampleOrder(config_.run.seed, place / size, place % size, size);
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
  FillText(samples, tokenizer_->pad(), inputs);
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    const ModuleConfig& encoder = *encoders_[i];
    const bool joined =
        std::any_of(config_.edges.begin(), config_.edges.end(), [&](const EdgeConfig& edge) {
          return edge.from == encoder.name && edge.to == module.name;
        });
    if (!joined) continue;
    AddEdge(samples, i, inputs);
    if (encoder.inline_in != module.name) continue;
    inputs.images[encoder.name] = LoadImages(SetOf(round).set, samples, i);
  }
  return inputs;
}

Inputs LlavaSource::EncoderInputs(std::size_t encoder, int dp, const Round& round,
                                  std::int64_t unit) const {
  const Samples samples = SamplesOf(*encoders_[encoder], dp, round, unit);
  Inputs inputs;
  inputs.table = EncoderRows(samples, encoder);
  inputs.images[encoders_[encoder]->name] = LoadImages(SetOf(round).set, samples, encoder);
  return inputs;
}

LlavaSource::Samples LlavaSource::SamplesOf(const ModuleConfig& module, int dp, const Round& round,
                                            std::int64_t unit) const {
  const bool windows = ColocatedEdge(config_, module) != nullptr;
  CheckIndex(module.name, windows ? "window" : "microbatch", unit,
             NumUnits(config_, module, round.microbatches));
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

Buffer LlavaSource::LoadImages(const LlavaSet& set, const Samples& samples,
                               std::size_t encoder) const {
  const std::int64_t size = encoders_[encoder]->vit.image_size;
  std::int64_t num_images = 0;
  for (const NumberedSample& each : samples) {
    if (each.sample.row != nullptr) num_images += std::ssize(each.sample.row->images[encoder]);
  }
  Buffer images = Buffer::Allocate({num_images, 3, size, size}, DType::kFloat32);
  const auto image_numbers = static_cast<std::size_t>(3 * size * size);
  auto* next = images.as<float>();
  for (const NumberedSample& each : samples) {
    if (each.sample.row == nullptr) continue;
    for (const std::string& image : each.sample.row->images[encoder]) {
      try {
        ToClipPixels(ReadImage(set.PathOf(image)), size, {next, image_numbers});
      } catch (const ImageError& error) {
        throw DataError(set.NameOf(*each.sample.row) + ": " + error.what());
      }
      next += image_numbers;
    }
  }
  return images;
}

}  // namespace troupe
