#include <utility>

#include "actors/boundary_leader.hpp"

namespace troupe {
namespace {

using Self = ActorPointer<DestinationLeader, DestinationLeaderState>;
using Flight = DestinationLeaderState::Flight;

void Fail(Self self, const caf::error& reason) {
  DestinationLeaderState& s = self->state;
  s.config.abort->Raise(TextOf(reason));
  for (auto& [microbatch, flight] : s.flights) {
    for (auto& [source, piece] : flight.pieces) {
      if (piece.asker.pending()) piece.asker.deliver(reason);
    }
  }
  s.flights.clear();
}

/// The stage has answered: cut the gradient where the rows came together.
void OnGradient(Self self, const Gradient& gradient) {
  DestinationLeaderState& s = self->state;
  auto node = s.flights.extract(gradient.unit);
  if (node.empty()) return;  // failed meanwhile
  std::int64_t row = 0;
  for (auto& [source, piece] : node.mapped().pieces) {
    GradientSlice answer{
        gradient.unit, BackwardTag(gradient.unit), gradient.shards.empty(), {}, {}};
    if (!answer.none) {
      const std::int64_t rows = piece.slice.shape.front();
      const Buffer cut = gradient.shards.front().Rows(row, row + rows);
      row += rows;
      answer.shape = cut.shape();
      answer.dtype = cut.dtype();
      if (rows > 0) {
        s.config.endpoint->Send(s.config.peer_endpoints.at(source), answer.tag, cut, [] {});
      }
    }
    piece.asker.deliver(std::move(answer));
  }
}

void Deliver(Self self, std::int64_t microbatch) {
  DestinationLeaderState& s = self->state;
  Flight& flight = s.flights.at(microbatch);
  auto rows = std::make_shared<RowTable>();
  std::vector<Buffer> parts;
  for (auto& [source, piece] : flight.pieces) {
    const RowTable& table = *piece.slice.rows;
    rows->samples.insert(rows->samples.end(), table.samples.begin(), table.samples.end());
    rows->rows.insert(rows->rows.end(), table.rows.begin(), table.rows.end());
    parts.push_back(std::move(piece.buffer));
  }
  Buffer whole = flight.whole.defined() ? std::move(flight.whole) : ConcatenateRows(parts);
  Activation activation{microbatch, s.config.link, {std::move(whole)}, std::move(rows)};
  self->request(s.config.stage, caf::infinite, std::move(activation))
      .then([self](const Gradient& gradient) { OnGradient(self, gradient); },
            [self](const caf::error& reason) { Fail(self, reason); });
}

/// Hands on every microbatch that is complete, in order. The only place that hands on.
void Pump(Self self) {
  DestinationLeaderState& s = self->state;
  for (;;) {
    const auto next = s.flights.find(s.delivered);
    if (next == s.flights.end() || next->second.here < s.sources.size()) return;
    Deliver(self, s.delivered++);
  }
}

/// All slices of a microbatch are announced, so its size is known: fetch the bytes.
void Fetch(Self self, std::int64_t microbatch) {
  DestinationLeaderState& s = self->state;
  Flight& flight = s.flights.at(microbatch);
  Shape shape;
  DType dtype = DType::kFloat32;
  std::size_t with_rows = 0;
  std::int64_t total = 0;
  for (auto& [source, piece] : flight.pieces) {
    shape = piece.slice.shape;
    dtype = piece.slice.dtype;
    total += piece.slice.shape.front();
    with_rows += piece.slice.shape.front() > 0 ? 1 : 0;
  }
  shape.front() = total;
  if (with_rows != 1) flight.whole = Buffer::Allocate(shape, dtype);

  const auto me = caf::actor_cast<DestinationLeader>(self);
  std::int64_t row = 0;
  for (auto& [source, piece] : flight.pieces) {
    const std::int64_t rows = piece.slice.shape.front();
    if (rows == 0) {
      piece.buffer = Buffer::Allocate(piece.slice.shape, dtype);
      ++flight.here;
      continue;
    }
    const Buffer place = flight.whole.defined() ? flight.whole.Rows(row, row + rows) : Buffer();
    row += rows;
    s.config.endpoint->Receive(
        s.config.peer_endpoints.at(source), piece.slice.tag, place,
        [me, microbatch, from = source](Buffer buffer) {
          caf::anon_send(me, SliceArrived{microbatch, from, std::move(buffer)});
        },
        [abort = s.config.abort, edge = s.config.edge](const std::string& error) {
          abort->Raise("edge " + edge + ": " + error);
        });
  }
  Pump(self);
}

}  // namespace

DestinationLeader::behavior_type RunDestinationLeader(Self self, DestinationLeaderConfig config) {
  DestinationLeaderState& s = self->state;
  s.config = std::move(config);
  s.sources =
      PeersOf(s.config.destination[static_cast<std::size_t>(s.config.shard)], s.config.source);
  return {
      [self, &s](const Slice& slice) -> caf::result<GradientSlice> {
        auto asker = self->make_response_promise<GradientSlice>();
        Flight& flight = s.flights[slice.microbatch];
        auto& piece = flight.pieces[slice.source];
        piece.slice = slice;
        piece.asker = asker;
        if (++flight.announced == s.sources.size()) Fetch(self, slice.microbatch);
        return asker;
      },
      [self, &s](const SliceArrived& arrived) {
        const auto found = s.flights.find(arrived.microbatch);
        if (found == s.flights.end()) return;  // failed meanwhile
        auto& piece = found->second.pieces.at(arrived.peer);
        piece.buffer = arrived.buffer;
        ++found->second.here;
        Pump(self);
      },
  };
}

}  // namespace troupe
