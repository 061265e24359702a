// Loads the inputs of one replica of a module that reads data.
//   receives  RoundBegin
//   sends     PrepareUnit{u} to the dispatcher of its process; the answer is UnitPrepared{u}
//             Input{u} to the stages that need it; the answer InputTaken{u} frees a place
//
//   order u    when u belongs to a round that has begun and fewer than `prefetch` units are ordered and
//              not delivered
//   deliver u  when its samples are prepared, all units before it are delivered, and the stage that has
//              taken most has fewer than `ahead` units that it has not taken
//
// A last stage takes a unit after all stages before it: its untaken units do not delay others.
//
// Making the tensors of a unit takes a while, so the actor has its own thread. Every round has the same
// number of units on every replica, independent of the samples, so that all replicas enter the same
// collectives.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/actor_base.hpp"
#include "messages/data.hpp"
#include "messages/round.hpp"
#include "plan/unit_samples.hpp"

namespace troupe {

struct FeedConfig {
  std::string name;  ///< "feed of vision dp0"
  std::string module;
  int dp = 0;
  UnitLength units;
  int ahead = 2;              ///< most units that are delivered and not taken
  int prefetch = 4;           ///< most units that are ordered and not delivered
  std::vector<Stage> stages;  ///< the first stage, and the last where it reads labels
  std::shared_ptr<InputSource> source;
  Dispatcher dispatcher;  ///< invalid: the source has no samples to prepare
  std::shared_ptr<AbortSignal> abort;
};

struct FeedState {
  static constexpr const char* name = "feed";

  /// A unit that is ordered and not delivered.
  struct Ordered {
    FeedUnit unit;
    std::int64_t number = 0;                          ///< since the start of the run
    std::optional<std::vector<Buffer>> samples = {};  ///< once they are prepared
    std::optional<Failure> failure = {};              ///< in place of `samples`
    DataDelay delay = {};
  };

  FeedConfig config;
  std::deque<Round> rounds;  ///< begun, not fully ordered; the front one is being ordered
  std::int64_t next_round = 0;
  std::int64_t unit_in_round = 0;                     ///< next to order
  std::int64_t unit = 0;                              ///< the same since the start of the run
  std::int64_t microbatches = 0;                      ///< of rounds that are fully ordered
  std::deque<Ordered> ordered;                        ///< the oldest first
  std::map<std::int64_t, std::set<std::size_t>> out;  ///< untaken units: stages that lack them
};

Feed::behavior_type RunFeed(ActorPointer<Feed, FeedState> self, FeedConfig config);

}  // namespace troupe
