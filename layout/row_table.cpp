#include "layout/row_table.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace troupe {
namespace {

/// Adds a run, as a part of the one before where it continues that.
void Append(std::vector<RowRun>& runs, const RowRun& run) {
  if (run.count == 0) return;
  if (!runs.empty()) {
    RowRun& last = runs.back();
    const std::int64_t next = last.place < 0 ? last.place : last.place + last.count;
    if (last.sample == run.sample && last.first + last.count == run.first && next == run.place) {
      last.count += run.count;
      return;
    }
  }
  runs.push_back(run);
}

/// By sample number.
std::map<std::int64_t, std::int64_t> LengthsOf(const RowTable& table) {
  std::map<std::int64_t, std::int64_t> lengths;
  for (std::size_t i = 0; i < table.lengths.size(); ++i) {
    lengths[table.samples[i]] = table.lengths[i];
  }
  return lengths;
}

/// The common part of a run and rows [first, end) of its sample.
RowRun Clipped(const RowRun& run, const Interval& rows) {
  const Interval common = Intersect({run.first, run.first + run.count}, rows);
  const std::int64_t place = run.place < 0 ? run.place : run.place + common.begin - run.first;
  return {run.sample, common.begin, common.size(), place};
}

/// Fills in the rows of each sample.
void CountRows(RowTable& table) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const RowRun& run : table.runs) counts[run.sample] += run.count;
  table.rows.clear();
  for (const std::int64_t sample : table.samples) table.rows.push_back(counts[sample]);
}

void AppendItemRows(const RowRun& run, const RowCut& cut, int part, std::vector<RowRun>& runs) {
  const std::int64_t each = cut.item_rows;
  const Interval own = PartOf(each, cut.parts, part);
  for (std::int64_t item = run.first / each; item * each < run.first + run.count; ++item) {
    Append(runs, Clipped(run, {item * each + own.begin, item * each + own.end}));
  }
}

}  // namespace

std::int64_t RowTable::num_rows() const {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

void AppendRow(std::int64_t sample, std::int64_t row, std::int64_t place,
               std::vector<RowRun>& runs) {
  Append(runs, {.sample = sample, .first = row, .count = 1, .place = place});
}

std::vector<RowRun> RunsOf(const RowTable& table) {
  if (!table.runs.empty()) return table.runs;
  std::vector<RowRun> runs;
  for (std::size_t i = 0; i < table.samples.size(); ++i) {
    Append(runs, {.sample = table.samples[i], .first = 0, .count = table.rows[i], .place = -1});
  }
  return runs;
}

ContextChunks ChunksOf(std::int64_t length, int parts, int part) {
  return {PartOf(length, 2 * parts, part), PartOf(length, 2 * parts, 2 * parts - 1 - part)};
}

RowTable CutTable(const RowTable& table, const RowCut& cut, int part) {
  if (cut.parts == 1) return table;
  RowTable own{table.samples, {}, table.lengths, {}};
  const std::map<std::int64_t, std::int64_t> lengths = LengthsOf(table);
  std::optional<std::int64_t> sample;
  bool mine = false;  // the row before is in this part
  for (const RowRun& run : RunsOf(table)) {
    if (cut.by == RowCut::By::kItems) {
      AppendItemRows(run, cut, part, own.runs);
      continue;
    }
    if (sample != run.sample) mine = part == 0;
    sample = run.sample;
    if (run.place < 0) {
      if (mine) Append(own.runs, run);
      continue;
    }
    const ContextChunks chunks = ChunksOf(lengths.at(run.sample), cut.parts, part);
    for (const Interval& chunk : {chunks.front, chunks.back}) {
      const std::int64_t shift = run.first - run.place;  // from tokens to rows
      Append(own.runs, Clipped(run, {chunk.begin + shift, chunk.end + shift}));
    }
    mine = chunks.Contains(run.place + run.count - 1);
  }
  CountRows(own);
  return own;
}

PartTokens::PartTokens(const std::map<std::int64_t, std::int64_t>& lengths, const RowCut& cut,
                       int part) {
  const bool pads = cut.parts == 1 && cut.pads;
  std::int64_t longest = 0;
  for (const auto& [sample, length] : lengths) longest = std::max(longest, length);
  for (const auto& [sample, length] : lengths) {
    const ContextChunks chunks = ChunksOf(pads ? longest : length, cut.parts, part);
    samples_[sample] = {num_rows_, chunks};
    num_rows_ += chunks.size();
  }
}

std::int64_t PartTokens::RowOf(std::int64_t sample, std::int64_t token) const {
  const auto& [first_row, chunks] = samples_.at(sample);
  return first_row + (chunks.front.Contains(token)
                          ? token - chunks.front.begin
                          : chunks.front.size() + token - chunks.back.begin);
}

RowTable SliceTable(const RowTable& table, const RowCut& cut, int part, int slice) {
  if (cut.slices == 1) return table;
  RowTable own{table.samples, {}, table.lengths, {}};
  const PartTokens tokens(LengthsOf(table), cut, part);
  const Interval rows = EqualPartOf(tokens.num_rows(), cut.slices, slice);
  std::optional<std::int64_t> sample;
  bool mine = false;  // the row before is in this slice
  for (const RowRun& run : RunsOf(table)) {
    if (sample != run.sample) mine = slice == 0;
    sample = run.sample;
    if (run.place < 0) {
      if (mine) Append(own.runs, run);
      continue;
    }
    const std::int64_t shift = run.first - tokens.RowOf(run.sample, run.place);
    Append(own.runs, Clipped(run, {rows.begin + shift, rows.end + shift}));
    mine = rows.Contains(tokens.RowOf(run.sample, run.place + run.count - 1));
  }
  CountRows(own);
  return own;
}

RowTable SamplesOf(const RowTable& table, const std::vector<Interval>& held) {
  const auto holds = [&held](std::int64_t sample) {
    return std::ranges::any_of(held, [=](const Interval& of) { return of.Contains(sample); });
  };
  RowTable own;
  for (std::size_t i = 0; i < table.samples.size(); ++i) {
    if (!holds(table.samples[i])) continue;
    own.samples.push_back(table.samples[i]);
    own.rows.push_back(table.rows[i]);
    if (!table.lengths.empty()) own.lengths.push_back(table.lengths[i]);
  }
  for (const RowRun& run : table.runs) {
    if (holds(run.sample)) own.runs.push_back(run);
  }
  return own;
}

std::vector<Interval> PlacesOf(const RowTable& part, const RowTable& table) {
  std::vector<Interval> places;
  const std::vector<RowRun> wanted = RunsOf(part);
  auto next = wanted.begin();
  std::int64_t row = 0;
  for (const RowRun& run : RunsOf(table)) {
    for (; next != wanted.end() && next->sample == run.sample &&
           next->first < run.first + run.count && next->first >= run.first;
         ++next) {
      const std::int64_t begin = row + next->first - run.first;
      if (!places.empty() && places.back().end == begin) {
        places.back().end = begin + next->count;
      } else {
        places.push_back({begin, begin + next->count});
      }
    }
    row += run.count;
  }
  return places;
}

Route RouteOf(const std::vector<RowTable>& sources, const std::vector<RowTable>& destinations) {
  struct Placed {
    RowRun run;
    int tensor = 0;
    std::int64_t row = 0;  ///< of the tensor
  };
  std::map<std::int64_t, std::vector<Placed>> of_sample;
  Route route;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    std::int64_t row = 0;
    for (const RowRun& run : RunsOf(sources[s])) {
      of_sample[run.sample].push_back({run, static_cast<int>(s), row});
      row += run.count;
    }
    route.source_rows.push_back(row);
  }
  for (auto& [sample, placed] : of_sample) {
    std::ranges::sort(placed, {}, [](const Placed& each) { return each.run.first; });
  }
  for (std::size_t d = 0; d < destinations.size(); ++d) {
    std::int64_t row = 0;
    for (const RowRun& run : RunsOf(destinations[d])) {
      for (const Placed& from : of_sample[run.sample]) {
        const RowRun common = Clipped(from.run, {run.first, run.first + run.count});
        if (common.count <= 0) continue;
        const std::int64_t source_row = from.row + common.first - from.run.first;
        const std::int64_t destination_row = row + common.first - run.first;
        Transfer* const last = route.transfers.empty() ? nullptr : &route.transfers.back();
        if (last != nullptr && last->source == from.tensor &&
            last->destination == static_cast<int>(d) && last->source_rows.end == source_row &&
            last->destination_rows.end == destination_row) {
          last->source_rows.end += common.count;
          last->destination_rows.end += common.count;
          continue;
        }
        route.transfers.push_back(
            {.source = from.tensor,
             .destination = static_cast<int>(d),
             .samples = {},
             .source_rows = {source_row, source_row + common.count},
             .destination_rows = {destination_row, destination_row + common.count}});
      }
      row += run.count;
    }
    route.destination_rows.push_back(row);
  }
  return route;
}

JoinedRows JoinTables(const std::vector<const RowTable*>& tables) {
  struct Placed {
    RowRun run;
    RowPiece piece;
  };
  std::vector<Placed> placed;
  std::map<std::int64_t, std::int64_t> lengths;  // of all samples
  bool plain = true;
  JoinedRows joined;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const RowTable& table = *tables[t];
    plain = plain && table.runs.empty() && table.lengths.empty();
    for (std::size_t i = 0; i < table.samples.size(); ++i) {
      lengths[table.samples[i]] = table.lengths.empty() ? 0 : table.lengths[i];
    }
    std::int64_t row = 0;
    for (const RowRun& run : RunsOf(table)) {
      placed.push_back({run, {t, {row, row + run.count}}});
      row += run.count;
    }
  }
  std::ranges::stable_sort(
      placed, {}, [](const Placed& each) { return std::pair(each.run.sample, each.run.first); });
  for (const auto& [sample, length] : lengths) {
    joined.table.samples.push_back(sample);
    if (length > 0) joined.table.lengths.push_back(length);
  }
  for (const Placed& each : placed) {
    Append(joined.table.runs, each.run);
    if (!joined.pieces.empty() && joined.pieces.back().tensor == each.piece.tensor &&
        joined.pieces.back().rows.end == each.piece.rows.begin) {
      joined.pieces.back().rows.end = each.piece.rows.end;
    } else {
      joined.pieces.push_back(each.piece);
    }
  }
  CountRows(joined.table);
  if (plain) joined.table.runs.clear();
  return joined;
}

}  // namespace troupe
