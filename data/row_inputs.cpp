// RowSource: from the rows of a unit to its inputs.
#include <algorithm>
#include <stdexcept>

#include "data/row_source.hpp"
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

/// Returns whether a sample is as its index says, on which all processes rely.
bool IsAsIndexed(const Sample& sample, const RowFacts& facts) {
  return std::ssize(sample.tokens) == facts.tokens && sample.num_labels() == facts.labels &&
         sample.lengths == facts.lengths;
}

/// Returns whether an end of an encoder's edges cuts rows.
bool CutsRowsOf(const Config& config, const std::string& encoder) {
  return std::ranges::any_of(config.edges, [&](const EdgeConfig& edge) {
    return edge.from == encoder && CutsRows(config, edge);
  });
}

void AddNames(const std::vector<NumberedSample>& samples, Inputs& inputs) {
  for (const NumberedSample& each : samples) {
    if (each.row < 0) continue;
    inputs.names.push_back(each.prepared.id);
    const auto& replaced = each.prepared.replaced;
    inputs.replaced.insert(inputs.replaced.end(), replaced.begin(), replaced.end());
  }
}

constexpr std::uint64_t Bit(std::size_t encoder) { return std::uint64_t{1} << encoder; }

}  // namespace

const ModuleConfig& RowSource::CheckedModule(const FeedUnit& unit) const {
  const std::string& name = unit.module;
  const ModuleConfig* module = config_.Find(name);
  if (module == nullptr) throw std::invalid_argument(name + ": no such module");
  CheckIndex(name, "replica", unit.dp, GridOf(config_, *module).layout().dp);
  const bool encodes = std::ranges::count(encoders_, module) > 0;
  if (!module->model->text() && (!encodes || module->inline_in)) {
    throw std::invalid_argument(name + ": expected a module that reads data by itself");
  }
  CheckIndex(name, ColocatedEdge(config_, *module) != nullptr ? "window" : "microbatch", unit.unit,
             UnitLength(config_, *module).In(unit.round.microbatches).count);
  return *module;
}

std::uint64_t RowSource::FieldsOf(const ModuleConfig& module) const {
  std::uint64_t fields = 0;
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    if (encoders_[i] == &module || encoders_[i]->inline_in == module.name) fields |= Bit(i);
  }
  return fields;
}

SampleTicket RowSource::TicketOf(bool train, std::int64_t row, std::uint64_t fields) const {
  const RowFacts facts = (train ? train_ : held_out_).rows.FactsOf(row);
  const auto& sources = train_.rows.sources();
  const auto source = std::ranges::upper_bound(sources, row, {}, &Interval::end) - sources.begin();
  // A token, its label and a place among the rows of an encoder take 8 bytes each, a flag 1.
  SampleTicket ticket{train, row, train ? static_cast<std::int32_t>(source) : -1, fields,
                      25 * facts.tokens};
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    if ((fields & Bit(i)) == 0) continue;
    const ItemFormat& format = format_->items[i];
    ticket.has_items = ticket.has_items || facts.lengths[i] > 0;
    ticket.bytes += facts.lengths[i] * NumElements(format.row_shape) *
                    static_cast<std::int64_t>(format.preprocessor->value_bytes());
  }
  return ticket;
}

RowSource::Samples RowSource::Placed(const Round& round, std::int64_t first,
                                     const std::vector<Interval>& numbers) const {
  Samples samples;
  for (const Interval& interval : numbers) {
    for (std::int64_t n = interval.begin; n < interval.end; ++n) {
      std::int64_t number = n * config_.most_in_pack();
      for (const std::int64_t row : RowsIn(round, first + n)) {
        samples.push_back({.number = number++, .row = row});
      }
    }
  }
  return samples;
}

RowSource::Samples RowSource::PlacedIn(const FeedUnit& unit) const {
  const ModuleConfig& module = CheckedModule(unit);
  const UnitSamples held =
      SamplesOfUnit(config_, module, unit.dp, unit.round.microbatches, unit.unit);
  return Placed(unit.round, held.first_microbatch * config_.samples_per_microbatch(), held.samples);
}

std::vector<SampleTicket> RowSource::TicketsOf(const FeedUnit& unit) {
  const std::uint64_t fields = FieldsOf(CheckedModule(unit));
  std::vector<SampleTicket> tickets;
  for (const NumberedSample& sample : PlacedIn(unit)) {
    if (sample.row >= 0) tickets.push_back(TicketOf(unit.round.train, sample.row, fields));
  }
  return tickets;
}

/// The preparation of one row.
class RowSource::RowWork : public SampleWork {
 public:
  RowWork(const RowSource& source, const SampleTicket& ticket) : source_(source), ticket_(ticket) {}

  void Read() override { stored_ = rows().Read(ticket_.row); }

  void Tokenize() override {
    prepared_.id = stored_.row.id;
    prepared_.sample = BuildSample(stored_.origin, stored_.row, *source_.format_);
    if (IsAsIndexed(prepared_.sample, rows().FactsOf(ticket_.row))) return;
    const char* const reason = "its images have other sizes than when it was indexed";
    throw FaultError(stored_.origin.file, stored_.row.Fault(FaultKind::kItem, reason));
  }

  Buffer Decode() override {
    const std::size_t num_encoders = source_.encoders_.size();
    prepared_.items.resize(num_encoders);
    for (std::size_t i = 0; i < num_encoders; ++i) {
      if ((ticket_.fields & Bit(i)) != 0) DecodeItems(i);
    }
    return Encode(prepared_);
  }

 private:
  const RowSet& rows() const { return (ticket_.train ? source_.train_ : source_.held_out_).rows; }

  void DecodeItems(std::size_t encoder) {
    const ItemFormat& format = source_.format_->items[encoder];
    for (const std::string& name : stored_.row.files[encoder]) {
      const ItemFile file = stored_.row.ItemOf(stored_.origin, name);
      const auto failed = [&](const std::runtime_error& error, bool has_length) {
        const DataFault fault = stored_.row.Fault(FaultKind::kItem, error.what());
        if (!source_.PolicyOf(ticket_.source).tolerates() || !has_length) {
          throw FaultError(stored_.origin.file, fault);
        }
        prepared_.replaced.push_back({ticket_.train, ticket_.source, stored_.row.index, file.name,
                                      FaultLine(stored_.origin.file, fault) + "; replaced by " +
                                          format.preprocessor->ZerosName()});
      };
      prepared_.items[encoder].push_back(PrepareItem(format, file, failed));
    }
  }

  const RowSource& source_;
  const SampleTicket ticket_;
  StoredRow stored_;
  PreparedSample prepared_;
};

std::unique_ptr<SampleWork> RowSource::Begin(const SampleTicket& ticket) const {
  return std::make_unique<RowWork>(*this, ticket);
}

void RowSource::Fill(bool train, std::uint64_t fields, const std::vector<Buffer>& prepared,
                     Samples& samples) const {
  std::size_t next = 0;
  for (NumberedSample& sample : samples) {
    if (sample.row < 0) {
      sample.prepared.sample = EmptySample(*format_);
      continue;
    }
    sample.prepared = Checked(train, sample.row, fields, prepared.at(next++));
  }
}

PreparedSample RowSource::Checked(bool train, std::int64_t row, std::uint64_t fields,
                                  const Buffer& prepared) const {
  PreparedSample sample = Decode(prepared, *format_, fields);
  const RowSet& rows = (train ? train_ : held_out_).rows;
  if (IsAsIndexed(sample.sample, rows.FactsOf(row))) return sample;
  throw std::runtime_error("a prepared sample is not that of row " + std::to_string(row));
}

bool RowSource::MayUse(const SampleTicket& ticket, const Buffer& sample) const {
  const PreparedSample prepared = Checked(ticket.train, ticket.row, ticket.fields, sample);
  const auto is_whole = [](const PreparedItem& item) {
    return item.length == 0 || !item.bytes.empty();
  };
  return prepared.replaced.empty() && std::ranges::all_of(prepared.items, [&](const auto& items) {
           return std::ranges::all_of(items, is_whole);
         });
}

std::string RowSource::NameOf(const SampleTicket& ticket) const {
  return rows(ticket.train).Read(ticket.row).name();
}

std::shared_ptr<const Inputs> RowSource::Assemble(const FeedUnit& unit,
                                                  const std::vector<Buffer>& prepared) {
  const ModuleConfig& module = CheckedModule(unit);
  const std::uint64_t fields = FieldsOf(module);
  Samples samples = PlacedIn(unit);
  Fill(unit.round.train, fields, prepared, samples);
  auto inputs = std::make_shared<Inputs>();
  AddNames(samples, *inputs);
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    if ((fields & Bit(i)) == 0) continue;
    inputs->fields[encoders_[i]->name] = ItemsOf(samples, format_->items[i], i);
  }
  if (!module.model->text()) {
    const auto own = std::ranges::find(encoders_, &module) - encoders_.begin();
    inputs->table =
        EncoderRows(samples, static_cast<std::size_t>(own), CutsRowsOf(config_, module.name));
    return inputs;
  }
  FillText(samples, format_->tokenizer->pad(), PadsRows(config_, module), *inputs);
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    if (config_.FindEdge(encoders_[i]->name, module.name) != nullptr) AddEdge(samples, i, *inputs);
  }
  return inputs;
}

Inputs RowSource::LoadWhole(const Round& round) {
  Samples samples = Placed(round, 0, {{0, config_.samples_per_microbatch() * round.microbatches}});
  const std::uint64_t all = Bit(encoders_.size()) - 1;
  std::vector<Buffer> prepared;
  for (const NumberedSample& sample : samples) {
    if (sample.row >= 0) prepared.push_back(Prepare(TicketOf(round.train, sample.row, all)));
  }
  Fill(round.train, all, prepared, samples);
  Inputs inputs;
  AddNames(samples, inputs);
  FillText(samples, format_->tokenizer->pad(), /*padded=*/true, inputs);
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    AddEdge(samples, i, inputs);
    inputs.fields[encoders_[i]->name] = ItemsOf(samples, format_->items[i], i);
  }
  return inputs;
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

}  // namespace troupe
