#include "layout/row_table.hpp"

#include <algorithm>
#include <map>
#include <random>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// Pairs of a token and one that it sees, of the tokens of one part.
double PairsOf(const ContextChunks& chunks) {
  double pairs = 0.0;
  for (const Interval& chunk : {chunks.front, chunks.back}) {
    for (std::int64_t t = chunk.begin; t < chunk.end; ++t) pairs += static_cast<double>(t + 1);
  }
  return pairs;
}

/// Samples with items of `item_rows` rows each at random places of their tokens, some rows of which
/// have no place.
RowTable RandomTable(std::mt19937& random, std::int64_t item_rows) {
  const auto below = [&](std::int64_t limit) {
    return std::uniform_int_distribution<std::int64_t>(0, limit - 1)(random);
  };
  RowTable table;
  for (std::int64_t sample = 3; sample < 8; ++sample) {
    const std::int64_t rows = below(3) * item_rows;
    std::int64_t place = below(4);
    for (std::int64_t row = 0; row < rows; ++row) {
      if (row % item_rows == 0) place += below(3);
      const bool drops = below(5) == 0;
      RowRun run{sample, row, 1, drops ? -1 : place};
      if (!drops) ++place;
      RowRun* const last = table.runs.empty() ? nullptr : &table.runs.back();
      const bool joins =
          last != nullptr && last->sample == sample &&
          (drops ? last->place < 0 : last->place >= 0 && last->place + last->count == run.place);
      if (joins) {
        ++last->count;
      } else {
        table.runs.push_back(run);
      }
    }
    table.samples.push_back(sample);
    table.rows.push_back(rows);
    table.lengths.push_back(place + 1 + below(9));
  }
  return table;
}

/// A number for each row, in the order of the tensor.
std::vector<std::int64_t> NumbersOf(const RowTable& table) {
  std::vector<std::int64_t> numbers;
  for (const RowRun& run : table.runs) {
    for (std::int64_t i = 0; i < run.count; ++i)
      numbers.push_back(run.sample * 1000 + run.first + i);
  }
  return numbers;
}

}  // namespace

TEST_CASE("chunks of a sample cover it once, also where it has fewer tokens than chunks") {
  for (const int parts : {1, 2, 3, 4}) {
    for (std::int64_t length = 0; length < 40; ++length) {
      std::vector<int> covered(static_cast<std::size_t>(length));
      for (int part = 0; part < parts; ++part) {
        const ContextChunks chunks = ChunksOf(length, parts, part);
        std::int64_t contained = 0;
        for (std::int64_t t = 0; t < length; ++t) {
          if (!chunks.Contains(t)) continue;
          ++contained;
          ++covered[static_cast<std::size_t>(t)];
        }
        CHECK(contained == chunks.size());
        CHECK(chunks.front.end <= chunks.back.begin);
      }
      CHECK(std::ranges::all_of(covered, [](int times) { return times == 1; }));
    }
  }
}

TEST_CASE("parts of a causal sample have equally many pairs from 64 tokens in a chunk on") {
  for (const int parts : {2, 3, 4, 8}) {
    for (std::int64_t length = 64 * 2 * parts; length < 64 * 2 * parts + 20; ++length) {
      double most = 0.0;
      double all = 0.0;
      for (int part = 0; part < parts; ++part) {
        const double pairs = PairsOf(ChunksOf(length, parts, part));
        most = std::max(most, pairs);
        all += pairs;
      }
      CHECK(most * parts / all <= 1.02);
    }
  }
}

TEST_CASE("slices between two cuts of the same rows join to the rows of each part") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::int64_t item_rows = 1 + round % 7;
    const RowTable whole = RandomTable(random, item_rows);
    const RowCut items{RowCut::By::kItems, 1 + round % 3, item_rows};
    const RowCut context{RowCut::By::kContext, 1 + round % 4};
    std::vector<std::int64_t> sent;
    for (int to = 0; to < context.parts; ++to) {
      const RowTable wanted = CutTable(whole, context, to);
      std::vector<RowTable> slices;
      std::vector<std::vector<std::int64_t>> tensors;
      for (int from = 0; from < items.parts; ++from) {
        const RowTable own = CutTable(whole, items, from);
        slices.push_back(CutTable(wanted, items, from));
        const std::vector<std::int64_t> numbers = NumbersOf(own);
        std::vector<std::int64_t>& slice = tensors.emplace_back();
        for (const Interval& rows : PlacesOf(slices.back(), own)) {
          for (auto row = rows.begin; row < rows.end; ++row) {
            slice.push_back(numbers.at(static_cast<std::size_t>(row)));
          }
        }
        CHECK(slice == NumbersOf(slices.back()));
        CHECK(slices.back().num_rows() == std::ssize(slice));
      }
      std::vector<const RowTable*> tables;
      for (const RowTable& slice : slices) tables.push_back(&slice);
      const JoinedRows joined = JoinTables(tables);
      CHECK(joined.table == wanted);
      std::vector<std::int64_t> rows;
      for (const RowPiece& piece : joined.pieces) {
        for (auto row = piece.rows.begin; row < piece.rows.end; ++row) {
          rows.push_back(tensors[piece.tensor].at(static_cast<std::size_t>(row)));
        }
      }
      CHECK(rows == NumbersOf(wanted));
      sent.insert(sent.end(), rows.begin(), rows.end());
    }
    std::ranges::sort(sent);
    CHECK(sent == NumbersOf(whole));
  }
}

TEST_CASE("slices of a part have the rows of their tokens, each row once") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const RowTable whole = RandomTable(random, 1 + round % 5);
    const RowCut cut{RowCut::By::kContext, 1 + round % 3, 1, 1 + round % 4, round % 2 == 0};
    for (int part = 0; part < cut.parts; ++part) {
      const RowTable own = CutTable(whole, cut, part);
      std::map<std::int64_t, std::int64_t> lengths;
      for (std::size_t i = 0; i < whole.samples.size(); ++i) {
        lengths[whole.samples[i]] = whole.lengths[i];
      }
      const PartTokens tokens(lengths, cut, part);
      std::vector<std::int64_t> rows;
      for (int slice = 0; slice < cut.slices; ++slice) {
        const RowTable in_slice = SliceTable(own, cut, part, slice);
        const std::int64_t each = (tokens.num_rows() + cut.slices - 1) / cut.slices;
        for (const RowRun& run : in_slice.runs) {
          if (run.place < 0) continue;
          for (std::int64_t i = 0; i < run.count; ++i) {
            CHECK(tokens.RowOf(run.sample, run.place + i) / each == slice);
          }
        }
        const std::vector<std::int64_t> numbers = NumbersOf(in_slice);
        rows.insert(rows.end(), numbers.begin(), numbers.end());
      }
      std::ranges::sort(rows);
      std::vector<std::int64_t> expected = NumbersOf(own.runs.empty() ? RowTable() : own);
      std::ranges::sort(expected);
      CHECK(rows == expected);
    }
  }
}

TEST_CASE("tables without runs join in the order of samples and stay without") {
  const RowTable a{{0, 1}, {2, 0}};
  const RowTable b{{2}, {3}};
  const JoinedRows joined = JoinTables({&a, &b});
  CHECK(joined.table == RowTable{{0, 1, 2}, {2, 0, 3}});
  CHECK(joined.pieces == std::vector<RowPiece>{{0, {0, 2}}, {1, {0, 3}}});
  CHECK(PlacesOf(SamplesOf(joined.table, {{1, 3}}), joined.table) == std::vector<Interval>{{2, 5}});
}

}  // namespace troupe
