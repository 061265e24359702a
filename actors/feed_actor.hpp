// Loads the inputs of one replica of a module that reads data.
//   receives  RoundBegin
//   sends     Input{u} to the stages that need it; the answer InputTaken{u} frees a place
//
//   load u    when u belongs to a round that has begun and the stage that has taken most has fewer
//             than `ahead` units that it has not taken
//
// A last stage takes a unit after all stages before it: its untaken units do not delay loading.
//
// Loading decodes images, so the actor has its own thread. Every round has the same number of units
// on every replica, independent of the samples, so that all replicas enter the same collectives.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/actor_base.hpp"
#include "messages/round.hpp"
#include "plan/unit_samples.hpp"

namespace troupe {

struct FeedConfig {
  std::string name;  ///< "feed of vision dp0"
  std::string module;
  int dp = 0;
  UnitLength units;
  int ahead = 2;              ///< units loaded before they are needed
  std::vector<Stage> stages;  ///< the first stage, and the last where it reads labels
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
  std::map<std::int64_t, std::set<std::size_t>> out;  ///< untaken units: stages that lack them
};

Feed::behavior_type RunFeed(ActorPointer<Feed, FeedState> self, FeedConfig config);

}  // namespace troupe
