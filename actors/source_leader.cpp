#include <algorithm>
#include <utility>

#include "actors/boundary_leader.hpp"
#include "layout/at.hpp"

namespace troupe {
namespace {

using SourcePointer = ActorPointer<SourceLeader, SourceLeaderState>;

void Pump(SourcePointer self);

/// The gradients of all pieces as one tensor.
Buffer InRowOrder(const std::vector<SourceLeaderState::Piece>& pieces) {
  std::map<std::int64_t, Buffer> by_row;
  for (const auto& piece : pieces) {
    std::int64_t row = 0;
    for (const Interval& rows : piece.rows) {
      by_row[rows.begin] = piece.gradient.Rows(row, row + rows.size());
      row += rows.size();
    }
  }
  std::vector<Buffer> parts = {pieces.front().gradient.Rows(0, 0)};
  for (auto& [row, buffer] : by_row) parts.push_back(std::move(buffer));
  return ConcatenateRows(parts);
}

/// All slices have arrived: puts the gradient together in the order of the rows.
void Answer(SourcePointer self, std::int64_t microbatch) {
  SourceLeaderState& s = self->state;
  auto node = s.flights.extract(microbatch);
  SourceLeaderState::Flight& flight = node.mapped();
  Gradient gradient{microbatch, {}};
  if (!flight.no_gradient) {
    gradient.shards.push_back(InRowOrder(flight.pieces));
  }
  flight.promise.deliver(std::move(gradient));
  Pump(self);
}

void OnPiece(SourcePointer self, std::int64_t microbatch, int destination, Buffer gradient) {
  SourceLeaderState& s = self->state;
  auto& flight = s.flights.at(microbatch);
  for (auto& piece : flight.pieces) {
    if (piece.destination != destination || piece.arrived) continue;
    piece.arrived = true;
    piece.gradient = std::move(gradient);
    --flight.missing;
    break;
  }
  // The oldest first: the stage counts its gradients in order.
  while (!s.flights.empty() && s.flights.begin()->second.missing == 0) {
    Answer(self, s.flights.begin()->first);
  }
}

void OnGradientSlice(SourcePointer self, int destination, const GradientSlice& slice) {
  SourceLeaderState& s = self->state;
  auto& flight = s.flights.at(slice.microbatch);
  if (!slice.buffer.defined()) flight.no_gradient = true;
  for (auto& piece : flight.pieces) piece.answered |= piece.destination == destination;
  if (slice.buffer.local()) return OnPiece(self, slice.microbatch, destination, slice.buffer);
  FetchInto(self, slice.buffer, s.config.device,
            "edge " + s.config.edge + ", gradient of microbatch " +
                std::to_string(slice.microbatch) + InParentheses(flight.place),
            SliceArrived{slice.microbatch, destination, {}});
}

/// The rows of this shard that belong to shard `destination`, of all those of its replica.
RowTable CutFor(const LeaderConfig& config, int destination, const RowTable& replica) {
  const RowCut& own = config.source_cut;
  const RowCut& other = config.destination_cut;
  const RowTable wanted = CutTable(replica, other, destination % other.parts);
  return SamplesOf(CutTable(wanted, own, config.shard % own.parts),
                   config.destination[At(destination / other.parts)]);
}

/// `table`'s rows at `places`, as one tensor.
Buffer RowsAt(const Buffer& tensor, const std::vector<Interval>& places) {
  std::vector<Buffer> parts = {tensor.Rows(0, 0)};
  for (const Interval& rows : places) parts.push_back(tensor.Rows(rows.begin, rows.end));
  return ConcatenateRows(parts);
}

/// Empty, or why the samples of the activation are not those of this shard.
std::string SamplesMismatch(const SourceLeaderState& s, const Activation& activation,
                            const RowTable& own) {
  const RowTable& table = *activation.rows;
  const auto& held = s.config.source[At(s.config.shard / s.config.source_cut.parts)];
  std::vector<std::int64_t> expected;
  for (const Interval& samples : held) {
    // Which numbers a pack has is known to those who made it.
    for (auto sample = samples.begin; sample < samples.end && !s.config.packs; ++sample) {
      expected.push_back(sample);
    }
  }
  if (s.config.packs) expected = SamplesOf(table, held).samples;
  const std::string where = "edge " + s.config.edge + " source " + std::to_string(s.config.shard) +
                            ", microbatch " + std::to_string(activation.unit) +
                            InParentheses(activation.place) + ": ";
  for (std::size_t i = 0; i < std::max(expected.size(), table.samples.size()); ++i) {
    if (i < expected.size() && i < table.samples.size() && expected[i] == table.samples[i])
      continue;
    const auto name = [i](const std::vector<std::int64_t>& samples) {
      return i < samples.size() ? "sample " + std::to_string(samples[i]) : std::string("the end");
    };
    return where + "expected " + name(expected) + " at place " + std::to_string(i) + ", got " +
           name(table.samples);
  }
  if (own.num_rows() != activation.shards.front().num_rows()) {
    return where + "expected " + std::to_string(own.num_rows()) +
           " rows as in the row table, got " + std::to_string(activation.shards.front().num_rows());
  }
  return {};
}

void Send(SourcePointer self, SourceLeaderState::Waiting waiting) {
  SourceLeaderState& s = self->state;
  const Activation& activation = waiting.activation;
  const std::int64_t microbatch = activation.unit;
  SourceLeaderState::Flight& flight = s.flights[microbatch];
  flight.promise = std::move(waiting.promise);
  flight.place = activation.place;
  self->activity()->credits_left = s.config.credits - static_cast<int>(s.flights.size());
  const RowTable own =
      CutTable(*activation.rows, s.config.source_cut, s.config.shard % s.config.source_cut.parts);
  const auto mismatch = SamplesMismatch(s, activation, own);
  if (!mismatch.empty()) return Fail(self, MakeFailure(mismatch));

  const Buffer& rows = activation.shards.front();  // tp shards hold copies: one is enough
  const auto peers = PeersOf(s.config.source[At(s.config.shard / s.config.source_cut.parts)],
                             {s.config.destination, s.config.destination_cut.parts});
  flight.missing = peers.size();
  for (const int peer : peers) {
    RowTable cut = CutFor(s.config, peer, *activation.rows);
    const auto& piece = flight.pieces.emplace_back(
        SourceLeaderState::Piece{.destination = peer, .rows = PlacesOf(cut, own), .gradient = {}});
    Slice slice{microbatch, s.config.shard,
                s.config.tensors->Push(RowsAt(rows, piece.rows), s.config.peer_homes.at(At(peer))),
                std::make_shared<const RowTable>(std::move(cut)), activation.place};
    Ask(self, s.config.peers.at(peer), std::move(slice),
        [self, peer](const GradientSlice& back) { OnGradientSlice(self, peer, back); });
  }
  // A shard without samples has no peers: its answer is an empty gradient.
  if (peers.empty()) {
    flight.promise.deliver(Gradient{microbatch, {Buffer::Zeros(rows.shape(), rows.dtype())}});
    s.flights.erase(microbatch);
  }
}

void Pump(SourcePointer self) {
  SourceLeaderState& s = self->state;
  while (!self->failed() && !s.waiting.empty() &&
         s.flights.size() < static_cast<std::size_t>(s.config.credits)) {
    SourceLeaderState::Waiting next = std::move(s.waiting.front());
    s.waiting.pop_front();
    Send(self, std::move(next));
  }
}

/// Gradients whose bytes are being fetched; the others are answers to requests.
ExpectedWaits ExpectedBy(const SourceLeaderState& s) {
  ExpectedWaits expected;
  for (const auto& [microbatch, flight] : s.flights) {
    for (const auto& piece : flight.pieces) {
      if (!piece.answered || piece.arrived) continue;
      expected.push_back({ExpectedWait::What::kAnswerBytes, KindOf<Slice>(), microbatch,
                          s.config.peers.at(piece.destination).address()});
    }
  }
  return expected;
}

}  // namespace

std::vector<int> PeersOf(const std::vector<Interval>& held, const EndShards& others) {
  std::vector<int> peers;
  for (std::size_t replica = 0; replica < others.replicas.size(); ++replica) {
    bool shares = false;
    for (const Interval& a : held) {
      for (const Interval& b : others.replicas[replica]) {
        shares = shares || !Intersect(a, b).empty();
      }
    }
    for (int part = 0; shares && part < others.parts; ++part) {
      peers.push_back(static_cast<int>(replica) * others.parts + part);
    }
  }
  return peers;
}

SourceLeader::behavior_type RunSourceLeader(SourcePointer self, SourceLeaderConfig config) {
  SourceLeaderState& s = self->state;
  s.config = std::move(config);
  self->Expects([&s] { return ExpectedBy(s); });
  return {
      [self, &s](const Activation& activation) -> caf::result<Gradient> {
        auto promise = self->make_response_promise<Gradient>();
        s.waiting.push_back({activation, promise});
        Pump(self);
        return promise;
      },
      [self](const SliceArrived& arrived) {
        OnPiece(self, arrived.microbatch, arrived.peer, arrived.buffer);
      },
  };
}

}  // namespace troupe
