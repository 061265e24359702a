// Has workers prepare the samples of the feeds of its process.
//   receives  PrepareUnit     from feeds; answers UnitPrepared, or why a sample cannot be used
//             SamplesUsed     a feed no longer holds the samples of a unit
//   sends     PrepareSample   to workers; the answer is SamplePrepared
//
//   give t    to a free worker, earlier microbatches first, when t belongs to the next unit of its feed, or
//             fits into `most_bytes` with all samples that are prepared or being prepared
//
// So prepared samples take at most `most_bytes` and the next unit of each feed. A sample depends on its
// ticket alone: any worker may prepare it, and if that worker ends, another does.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "actors/actor_base.hpp"
#include "messages/data.hpp"

namespace troupe {

struct DispatcherConfig {
  struct Worker {
    DataWorker actor;
    std::string process;  ///< name
  };
  std::string name;  ///< "dispatcher of n1"
  std::vector<Worker> workers;
  std::int64_t most_bytes = 0;
  std::shared_ptr<AbortSignal> abort;
};

struct DispatcherState {
  static constexpr const char* name = "dispatcher";

  /// Orders are served in this order.
  struct OrderKey {
    std::int64_t microbatch = 0;
    std::int64_t arrival = 0;  ///< number
    friend auto operator<=>(const OrderKey&, const OrderKey&) = default;
  };
  /// A unit whose samples the feed has not used yet.
  struct Order {
    caf::actor_addr feed;
    std::int64_t unit = 0;  ///< its number at the feed
    std::vector<SampleTicket> tickets;
    std::vector<Buffer> samples;  ///< by ticket
    std::map<std::tuple<std::int32_t, DataPhase, std::string>, std::int64_t>
        ns;                                 ///< as of DataDelay
    std::size_t next = 0;                   ///< the first ticket that no worker has got
    std::vector<std::size_t> again;         ///< tickets whose worker is gone
    std::size_t missing = 0;                ///< tickets without a sample
    std::map<std::size_t, Failure> failed;  ///< by ticket
    Promise<UnitPrepared> answer;
  };

  DispatcherConfig config;
  std::map<OrderKey, Order> orders;
  std::int64_t next_order = 0;
  std::vector<std::size_t> free;  ///< workers without a ticket
  std::size_t gone = 0;           ///< workers that have ended
  std::int64_t bytes = 0;         ///< of samples that are prepared or being prepared
};

Dispatcher::behavior_type RunDispatcher(ActorPointer<Dispatcher, DispatcherState> self,
                                        DispatcherConfig config);

}  // namespace troupe
