#include <algorithm>
#include <utility>

#include "actors/boundary_leader.hpp"
#include "layout/at.hpp"

namespace troupe {
namespace {

using DestinationPointer = ActorPointer<DestinationLeader, DestinationLeaderState>;
using Flight = DestinationLeaderState::Flight;

/// The gradient of the stage is in this process: cuts it where the rows were joined.
void Answer(DestinationPointer self, std::int64_t microbatch) {
  DestinationLeaderState& s = self->state;
  auto node = s.flights.extract(microbatch);
  Flight& flight = node.mapped();
  std::vector<std::map<std::int64_t, Buffer>> parts(flight.pieces.size());  // by source, then row
  for (std::size_t slice = 0; slice < flight.gradients.size(); ++slice) {
    const Buffer& all = flight.gradients[slice];
    for (auto& of_source : parts) of_source.emplace(-1, all.Rows(0, 0));
    std::int64_t row = 0;
    for (const RowPiece& piece : flight.slices[slice]) {
      parts[piece.tensor][piece.rows.begin] = all.Rows(row, row + piece.rows.size());
      row += piece.rows.size();
    }
  }
  std::size_t number = 0;
  for (auto& [source, piece] : flight.pieces) {
    GradientSlice answer{microbatch, {}};
    std::vector<Buffer> rows;
    for (auto& [row, buffer] : parts[number++]) rows.push_back(std::move(buffer));
    if (!rows.empty()) {
      answer.buffer =
          s.config.tensors->Push(ConcatenateRows(rows), s.config.peer_homes.at(At(source)));
    }
    piece.promise.deliver(std::move(answer));
  }
}

void OnShard(DestinationPointer self, const SliceArrived& arrived) {
  Flight& flight = self->state.flights.at(arrived.microbatch);
  flight.gradients.at(At(arrived.peer)) = arrived.buffer;
  if (--flight.missing_gradients == 0) Answer(self, arrived.microbatch);
}

/// The stage has answered. Of a rank along tp in another process the gradient is fetched. One shard
/// for each slice, or the first of equal ones.
void OnGradient(DestinationPointer self, const Gradient& gradient) {
  DestinationLeaderState& s = self->state;
  Flight& flight = s.flights.at(gradient.unit);
  if (!gradient.shards.empty()) {
    const auto end = gradient.shards.begin() + std::ssize(flight.slices);
    flight.gradients.assign(gradient.shards.begin(), end);
  }
  const auto is_remote = [](const Buffer& shard) { return !shard.local(); };
  flight.missing_gradients =
      static_cast<std::size_t>(std::ranges::count_if(flight.gradients, is_remote));
  if (flight.missing_gradients == 0) return Answer(self, gradient.unit);
  for (std::size_t slice = 0; slice < flight.gradients.size(); ++slice) {
    if (flight.gradients[slice].local()) continue;
    FetchInto(self, flight.gradients[slice], s.config.device,
              "edge " + s.config.edge + ", gradient of microbatch " +
                  std::to_string(gradient.unit) +
                  InParentheses(flight.pieces.begin()->second.slice.place),
              SliceArrived{gradient.unit, static_cast<int>(slice), {}, false, true});
  }
}

/// The pieces that rows `rows` of the joined ones consist of.
void AppendPieces(const std::vector<RowPiece>& joined, const Interval& rows,
                  std::vector<RowPiece>& pieces) {
  std::int64_t row = 0;
  for (const RowPiece& piece : joined) {
    const Interval common = Intersect({row, row + piece.rows.size()}, rows);
    if (common.size() > 0) {
      const std::int64_t begin = piece.rows.begin + common.begin - row;
      pieces.push_back({piece.tensor, {begin, begin + common.size()}});
    }
    row += piece.rows.size();
  }
}

/// The rows of each slice of this part.
std::vector<std::vector<RowPiece>> SlicesOf(const LeaderConfig& config, const JoinedRows& joined) {
  const RowCut& cut = config.destination_cut;
  if (cut.slices == 1) return {joined.pieces};
  std::vector<std::vector<RowPiece>> slices(At(cut.slices));
  for (int slice = 0; slice < cut.slices; ++slice) {
    const RowTable own = SliceTable(joined.table, cut, config.shard % cut.parts, slice);
    for (const Interval& rows : PlacesOf(own, joined.table)) {
      AppendPieces(joined.pieces, rows, slices[At(slice)]);
    }
  }
  return slices;
}

void Deliver(DestinationPointer self, std::int64_t microbatch) {
  DestinationLeaderState& s = self->state;
  Flight& flight = s.flights.at(microbatch);
  std::vector<const RowTable*> tables;
  std::vector<Buffer> tensors;
  for (auto& [source, piece] : flight.pieces) {
    tables.push_back(piece.slice.rows.get());
    tensors.push_back(std::exchange(piece.buffer, {}));
    piece.slice.buffer = Buffer();
  }
  JoinedRows joined = JoinTables(tables);
  flight.slices = SlicesOf(s.config, joined);
  std::vector<Buffer> shards;
  for (const auto& slice : flight.slices) {
    std::vector<Buffer> parts = {tensors.front().Rows(0, 0)};
    for (const RowPiece& piece : slice) {
      parts.push_back(tensors[piece.tensor].Rows(piece.rows.begin, piece.rows.end));
    }
    shards.push_back(ConcatenateRows(parts));
  }
  Activation activation{microbatch, s.config.link, std::move(shards),
                        std::make_shared<const RowTable>(std::move(joined.table)),
                        flight.pieces.begin()->second.slice.place};
  Ask(self, s.config.stage, std::move(activation),
      [self](const Gradient& gradient) { OnGradient(self, gradient); });
}

/// Sends every microbatch that is complete to the stage, in order. The only place that does.
void Pump(DestinationPointer self) {
  DestinationLeaderState& s = self->state;
  for (;;) {
    const auto next = s.flights.find(s.delivered);
    if (next == s.flights.end() || next->second.arrived < s.sources.size()) return;
    Deliver(self, s.delivered++);
  }
}

/// The rows of one source have arrived in this process.
void OnPiece(DestinationPointer self, std::int64_t microbatch, int source, const Buffer& buffer) {
  Flight& flight = self->state.flights.at(microbatch);
  flight.pieces.at(source).buffer = buffer;
  ++flight.arrived;
  Pump(self);
}

void Fetch(DestinationPointer self, const Slice& slice) {
  DestinationLeaderState& s = self->state;
  if (slice.buffer.local()) return OnPiece(self, slice.microbatch, slice.source, slice.buffer);
  FetchInto(self, slice.buffer, s.config.device,
            "edge " + s.config.edge + ", microbatch " + std::to_string(slice.microbatch) +
                InParentheses(slice.place),
            SliceArrived{slice.microbatch, slice.source, {}});
}

/// Slices that complete a microbatch which has begun to arrive.
ExpectedWaits ExpectedBy(const DestinationLeaderState& s) {
  using enum ExpectedWait::What;
  ExpectedWaits expected;
  for (const auto& [microbatch, flight] : s.flights) {
    if (flight.missing_gradients > 0) {
      expected.push_back({kAnswerBytes, KindOf<Activation>(), microbatch, s.config.stage_actor});
    }
    if (microbatch < s.delivered) continue;
    for (const int source : s.sources) {
      const auto piece = flight.pieces.find(source);
      const bool arrived = piece != flight.pieces.end();
      if (arrived && piece->second.buffer.defined()) continue;
      expected.push_back({arrived ? kRequestBytes : kRequest, KindOf<Slice>(), microbatch,
                          s.config.source_leaders.at(At(source))});
    }
  }
  return expected;
}

}  // namespace

DestinationLeader::behavior_type RunDestinationLeader(DestinationPointer self,
                                                      DestinationLeaderConfig config) {
  DestinationLeaderState& s = self->state;
  s.config = std::move(config);
  const int replica = s.config.shard / s.config.destination_cut.parts;
  s.sources =
      PeersOf(s.config.destination[At(replica)], {s.config.source, s.config.source_cut.parts});
  self->Expects([&s] { return ExpectedBy(s); });
  return {
      [self, &s](const Slice& slice) -> caf::result<GradientSlice> {
        auto promise = self->make_response_promise<GradientSlice>();
        Flight& flight = s.flights[slice.microbatch];
        auto& piece = flight.pieces[slice.source];
        piece.slice = slice;
        piece.promise = promise;
        Fetch(self, slice);
        return promise;
      },
      [self](const SliceArrived& arrived) {
        if (arrived.of_stage) return OnShard(self, arrived);
        OnPiece(self, arrived.microbatch, arrived.peer, arrived.buffer);
      },
  };
}

}  // namespace troupe
