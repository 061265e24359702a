#include <exception>
#include <memory>
#include <utility>

#include "actors/director_parts.hpp"

namespace troupe {
namespace {

/// The pieces of other processes are brought here. Waits: the Director has a thread of its own.
bool FetchAll(DirectorPointer self, std::vector<TensorPiece>& pieces) {
  try {
    for (TensorPiece& piece : pieces) {
      piece.value = self->state.config.tensors->FetchNow(piece.value, piece.name);
    }
    return true;
  } catch (const std::exception& e) {
    Fail(self, e.what());
    return false;
  }
}

/// The same command to every shard of the job, then goes on with what all answered.
template <class Command, class Then>
void TellShards(DirectorPointer self, Command command, Then then) {
  DirectorState& s = self->state;
  struct Gathered {
    std::size_t missing = 0;
    std::vector<SavedShard> shards;  ///< in the order of the configuration, whoever answers first
  };
  auto gathered = std::make_shared<Gathered>();
  gathered->missing = s.config.shards.size();
  for (const auto& [devices, inspects] : s.config.shards) {
    const std::size_t first = gathered->shards.size();
    ToSet<Command> set;
    for (const auto& [rank, inspect] : inspects.parts) {
      gathered->shards.push_back({rank, inspect.stage, ""});
      command.stage = inspect.stage;
      set.parts.emplace_back(rank, command);
    }
    self->request(devices, caf::infinite, std::move(set))
        .then(
            [gathered, then, first](const FromSet<ShardStored>& stored) {
              for (std::size_t i = 0; i < stored.parts.size(); ++i) {
                gathered->shards.at(first + i).sha256 = stored.parts[i].sha256;
              }
              if (--gathered->missing == 0) then(gathered->shards);
            },
            OnError(self));
  }
}

}  // namespace

void InspectShards(DirectorPointer self, TensorKind kind,
                   std::function<void(const std::vector<TensorPiece>&)> then) {
  struct Gather {
    std::vector<TensorPiece> pieces;
    std::size_t missing = 0;
  };
  DirectorState& s = self->state;
  auto gather = std::make_shared<Gather>();
  gather->missing = s.config.shards.size();
  for (auto [devices, set] : s.config.shards) {
    for (auto& [rank, inspect] : set.parts) inspect.kind = kind;
    self->request(devices, caf::infinite, std::move(set))
        .then(
            [self, gather, then](const FromSet<Inspected>& done) {
              for (const auto& part : done.parts) {
                gather->pieces.insert(gather->pieces.end(), part.pieces.begin(), part.pieces.end());
              }
              if (--gather->missing > 0 || !FetchAll(self, gather->pieces)) return;
              then(gather->pieces);
            },
            OnError(self));
  }
}

void SaveShards(DirectorPointer self, const std::string& folder,
                std::function<void(const std::vector<SavedShard>&)> then) {
  const DirectorState& s = self->state;
  TellShards(self, SaveShard{0, folder, s.steps_done, s.next_round}, std::move(then));
}

void LoadShards(DirectorPointer self, const std::string& folder, std::function<void()> then) {
  TellShards(self, LoadShard{0, folder},
             [then = std::move(then)](const std::vector<SavedShard>&) { then(); });
}

}  // namespace troupe
