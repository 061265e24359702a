#include <utility>

#include "actors/boundary_leader.hpp"
#include "layout/at.hpp"

namespace troupe {
namespace {

using DestinationPointer = ActorPointer<DestinationLeader, DestinationLeaderState>;
using Flight = DestinationLeaderState::Flight;

/// The stage has answered: cuts the gradient where the rows were joined.
void OnGradient(DestinationPointer self, const Gradient& gradient) {
  DestinationLeaderState& s = self->state;
  auto node = s.flights.extract(gradient.unit);
  Flight& flight = node.mapped();
  std::vector<std::vector<Buffer>> parts(flight.pieces.size());
  if (!gradient.shards.empty()) {
    const Buffer& all = gradient.shards.front();
    std::int64_t row = 0;
    for (const RowPiece& piece : flight.joined) {
      parts[piece.tensor].push_back(all.Rows(row, row + piece.rows.size()));
      row += piece.rows.size();
    }
    for (auto& of_source : parts) {
      if (of_source.empty()) of_source.push_back(all.Rows(0, 0));
    }
  }
  std::size_t number = 0;
  for (auto& [source, piece] : flight.pieces) {
    GradientSlice answer{gradient.unit, {}};
    const auto& of_source = parts[number++];
    if (!of_source.empty()) {
      answer.buffer =
          s.config.tensors->Push(ConcatenateRows(of_source), s.config.peer_homes.at(At(source)));
    }
    piece.promise.deliver(std::move(answer));
  }
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
  std::vector<Buffer> parts = {tensors.front().Rows(0, 0)};
  for (const RowPiece& piece : joined.pieces) {
    parts.push_back(tensors[piece.tensor].Rows(piece.rows.begin, piece.rows.end));
  }
  flight.joined = std::move(joined.pieces);
  Activation activation{microbatch,
                        s.config.link,
                        {ConcatenateRows(parts)},
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
        OnPiece(self, arrived.microbatch, arrived.peer, arrived.buffer);
      },
  };
}

}  // namespace troupe
