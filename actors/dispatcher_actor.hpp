// Has workers prepare the samples of the feeds of its process.
//   receives  PrepareUnit     from feeds; answers UnitPrepared, or why a sample cannot be used
//             SamplesUsed     a feed no longer holds the samples of a unit
//             MachineJoined   a feed machine prepares samples, too, until it is gone
//             LookForLate     from itself, when a machine will be late with a sample
//   sends     PrepareSample   to workers; the answer is SamplePrepared
//
//   give t    to a machine with a free credit that is not late, else to a free worker of the process, earlier
//             microbatches first, when t belongs to the next unit of its feed, or fits into `most_bytes` with
//             all samples that are prepared or being prepared
//   again t   when its worker is gone; when a machine may not decide about it, or is late, to a worker of the
//             process; of a late one the first answer counts
//
// A machine that is late with a sample and answers nothing meanwhile is late with all that it has. It gets no
// others until it answers. So machines only help: the workers of the process alone are enough. And prepared samples take at most
// `most_bytes` and the next unit of each feed. A sample depends on its ticket alone: any worker may prepare it.
#pragma once

#include <chrono>
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
  std::string name;                   ///< "dispatcher of n1"
  std::string process;                ///< its name
  std::vector<SampleWorker> workers;  ///< threads of the process
  std::int64_t most_bytes = 0;
  /// A machine is late when a sample takes longer than this, and than four times the mean of machines; in
  /// any case after ten times this.
  std::chrono::nanoseconds patience = std::chrono::seconds(1);
  std::shared_ptr<AbortSignal> abort;
};

struct DispatcherState {
  static constexpr const char* name = "dispatcher";

  struct Worker {
    SampleWorker actor;
    std::string where;                               ///< the process or the machine
    int free = 1;                                    ///< samples that it may be given now
    std::shared_ptr<FeedMachine> machine = nullptr;  ///< unless it is a thread of the process
    bool is_late = false;          ///< only of a machine: it gets no tickets until it answers
    std::int64_t answered_ns = 0;  ///< when it answered last
  };
  /// Orders are served in this order.
  struct OrderKey {
    std::int64_t microbatch = 0;
    std::int64_t arrival = 0;  ///< number
    friend auto operator<=>(const OrderKey&, const OrderKey&) = default;
  };
  struct Wanted {
    SampleTicket ticket;
    Buffer sample = {};                      ///< once it is prepared
    std::map<int, std::int64_t> given = {};  ///< when, by worker that has the ticket
    bool is_done = false;                    ///< the outcome is known
    bool decides_here = false;               ///< a worker of the process must prepare it
  };
  /// A unit whose samples the feed has not used yet.
  struct Order {
    caf::actor_addr feed;
    std::int64_t unit = 0;  ///< its number at the feed
    std::vector<Wanted> samples;
    std::map<std::tuple<std::int32_t, DataPhase, std::string>, std::int64_t>
        ns;                                 ///< as of DataDelay
    std::size_t next = 0;                   ///< the first ticket that no worker has got
    std::vector<std::size_t> again;         ///< tickets that no worker has now
    std::vector<std::size_t> late;          ///< tickets with which machines are late
    std::size_t missing = 0;                ///< samples whose outcome is not known
    std::map<std::size_t, Failure> failed;  ///< by ticket
    Promise<UnitPrepared> answer;
  };

  DispatcherConfig config;
  std::map<OrderKey, Order> orders;
  std::int64_t next_order = 0;
  std::map<int, Worker> workers;  ///< by number, those that have not ended
  int next_worker = 0;
  std::int64_t bytes = 0;  ///< of samples that are prepared or being prepared
  double mean_ns = 0;      ///< of the samples of machines, the last ones most
  bool looks = false;      ///< LookForLate is on its way
};

Dispatcher::behavior_type RunDispatcher(ActorPointer<Dispatcher, DispatcherState> self,
                                        DispatcherConfig config);

}  // namespace troupe
