// Brings the inputs of one replica of a module that reads data.
//   receives  RoundBegin
//   sends     Input{u} to the stages that need it; the answer InputTaken{u} frees a place
//
//   load u    when u belongs to a round that has begun and the stage that has taken most has fewer
//             than `ahead` units that it has not taken
//
// A last stage takes a unit after all stages before it: what it has not taken holds nothing back.
//
// Loading decodes images, so the actor has a thread of its own. Every round has the same number of
// units on every replica, whatever the samples hold: nothing here can make a collective uneven.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/actor_base.hpp"
#include "messages/round.hpp"
#include "transport/abort_signal.hpp"

namespace troupe {

struct FeedConfig {
  std::string name;  ///< "feed of vision dp0"
  std::string module;
  int dp = 0;
  std::int64_t microbatches_per_unit = 1;  ///< 0 = the whole round
  int ahead = 2;                           ///< units loaded before they are needed
  std::vector<Stage> stages;               ///< the first stage, and the last where it reads labels
  std::shared_ptr<InputSource> source;
  std::shared_ptr<AbortSignal> abort;
};

struct FeedState {
  static constexpr const char* name = "feed";

  FeedConfig config;
  std::deque<Round> rounds;  ///< begun, not fully loaded; the front one is loading
  std::int64_t next_round = 0;
  std::int64_t unit_in_round = 0;                     ///< next to load
  std::int64_t unit = 0;                              ///< the same since the start of the run
  std::map<std::int64_t, std::set<std::size_t>> out;  ///< units not taken yet: who still holds them
  bool failed = false;
};

Feed::behavior_type RunFeed(ActorPointer<Feed, FeedState> self, FeedConfig config);

}  // namespace troupe
