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
  std::int64_t row = 0;
  for (auto& [source, piece] : node.mapped().pieces) {
    GradientSlice answer{gradient.unit, {}};
    if (!gradient.shards.empty()) {
      const std::int64_t rows = piece.num_rows;
      answer.buffer = s.config.tensors->Push(gradient.shards.front().Rows(row, row + rows),
                                             s.config.peer_homes.at(At(source)));
      row += rows;
    }
    piece.promise.deliver(std::move(answer));
  }
}

void Deliver(DestinationPointer self, std::int64_t microbatch) {
  DestinationLeaderState& s = self->state;
  Flight& flight = s.flights.at(microbatch);
  auto rows = std::make_shared<RowTable>();
  std::vector<Buffer> parts;
  for (auto& [source, piece] : flight.pieces) {
    const RowTable& table = *piece.slice.rows;
    rows->samples.insert(rows->samples.end(), table.samples.begin(), table.samples.end());
    rows->rows.insert(rows->rows.end(), table.rows.begin(), table.rows.end());
    piece.num_rows = piece.buffer.num_rows();
    piece.slice.buffer = Buffer();
    parts.push_back(std::move(piece.buffer));
  }
  Activation activation{microbatch,
                        s.config.link,
                        {ConcatenateRows(parts)},
                        std::move(rows),
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
  s.sources = PeersOf(s.config.destination[At(s.config.shard)], s.config.source);
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
