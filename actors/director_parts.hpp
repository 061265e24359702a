// The parts of the Director that do not decide which round begins or ends.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actors/director_actor.hpp"

namespace troupe {

using DirectorPointer = ActorPointer<Director, DirectorState>;

/// Ends the job with `failure`, or with an earlier one.
void Fail(DirectorPointer self, const Failure& failure);

/// The same with what a request was answered with.
inline auto OnError(DirectorPointer self) {
  return [self](const caf::error& reason) { Fail(self, TextOf(reason)); };
}

// What is asked of all shards of the job. Each goes on with `then` when all have answered; a
// failure ends the job instead.

/// Gathers one kind of tensor from every shard, in this process.
void InspectShards(DirectorPointer self, TensorKind kind,
                   std::function<void(const std::vector<TensorPiece>&)> then);

/// Every shard writes its file into `folder`.
void SaveShards(DirectorPointer self, const std::string& folder,
                std::function<void(const std::vector<SavedShard>&)> then);

/// Every shard reads its file in `folder`.
void LoadShards(DirectorPointer self, const std::string& folder, std::function<void()> then);

}  // namespace troupe
