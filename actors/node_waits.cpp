#include <exception>
#include <filesystem>
#include <utility>

#include "actors/node_actor.hpp"
#include "actors/wait_lists.hpp"
#include "files/output_file.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// Keys of actors by the node in their addresses.
ActorKeyOf KeysOf(const NodeState& s) {
  std::map<caf::node_id, ProcessId> processes;
  for (const auto& [process, node] : s.nodes) processes[node.node()] = process;
  return [processes](const caf::actor_addr& address) {
    const auto process = processes.find(address.node());
    return process == processes.end() ? ActorKey() : ActorKey{process->second, address.id()};
  };
}

/// A device in a handler does not answer before that ends, which may take long.
bool CanAnswer(const caf::actor& child, const ActorId& id) {
  const auto* const active = dynamic_cast<Active*>(caf::actor_cast<caf::abstract_actor*>(child));
  return id.kind != ActorKind::kDevice || !active->activity()->busy();
}

/// Collects the wait lists of all processes.
void AskAllWaits(NodePointer self, const std::function<void(std::vector<ActorWaits>)>& then) {
  const auto actors = std::make_shared<std::vector<ActorWaits>>();
  const auto missing = std::make_shared<std::size_t>(self->state.nodes.size());
  const auto answered = [actors, missing, then](const Waits& waits) {
    actors->insert(actors->end(), waits.actors.begin(), waits.actors.end());
    if (--*missing > 0) return;
    NameActors(*actors);
    then(std::move(*actors));
  };
  for (const auto& [process, node] : self->state.nodes) {
    self->request(node, std::chrono::milliseconds(1000), ReportWaits{})
        .then(answered, [answered](const caf::error&) { answered({}); });
  }
}

/// "12 s", "0.5 s".
std::string RoughSeconds(std::int64_t ns) {
  const double seconds = static_cast<double>(ns) * 1e-9;
  return Fixed(seconds, seconds < 9.95 ? 1 : 0) + " s";
}

/// " (step 3 mb 7)" of microbatch `number`, counted from the start of the run.
std::string PlaceOfMicrobatch(const RoundPlan& rounds, std::int64_t number) {
  for (std::int64_t r = 0; const auto round = rounds(r); ++r) {
    if (number < round->microbatches) {
      return " (" + RoundName(*round) + " mb " + std::to_string(number) + ")";
    }
    number -= round->microbatches;
  }
  return "";
}

}  // namespace

caf::result<Waits> CollectWaits(NodePointer self) {
  const NodeState& s = self->state;
  struct Gather {
    Waits waits;
    std::size_t missing = 0;
    Promise<Waits> promise;
  };
  auto gather = std::make_shared<Gather>();
  gather->promise = self->make_response_promise<Waits>();
  const auto answered = [&s, gather] {
    if (--gather->missing > 0) return;
    auto& all = gather->waits.actors;
    if (s.config.group_waits) {
      for (auto& wait : s.config.group_waits->List()) all.push_back(std::move(wait));
    }
    const auto& processes = s.config.processes->processes();
    if (processes.size() > 1) {
      const std::string& node = processes[At(s.config.self)].name;
      for (ActorWaits& actor : all) actor.node = node;
    }
    gather->promise.deliver(gather->waits);
  };
  const auto add = [gather, answered](ActorWaits waits) {
    gather->waits.actors.push_back(std::move(waits));
    answered();
  };
  gather->missing = s.owned.size() + 1;
  const ActorKeyOf key_of = KeysOf(s);
  for (const caf::actor& child : s.owned) {
    const ActorId& id = s.children.at(child.address());
    const ActorWaits silent{ToString(id), "", true, {}, {}, key_of(child.address())};
    if (!CanAnswer(child, id)) {
      add(silent);
      continue;
    }
    self->request(caf::actor_cast<Debtor>(child), std::chrono::milliseconds(500), ReportDebts{})
        .then(
            [add, key_of, silent](const Debts& debts) {
              ActorWaits waits = silent;
              waits.busy = false;
              AddInWords(debts, key_of, waits);
              add(std::move(waits));
            },
            [add, silent](const caf::error&) { add(silent); });
  }
  answered();
  return gather->promise;
}

void WriteAllWaits(NodePointer self, const WriteWaits& write) {
  NodeState& s = self->state;
  const auto first = s.nodes.find(0);
  if (s.config.self != 0 && first != s.nodes.end()) return self->send(first->second, WriteWaits{});
  AskAllWaits(self, [self, before = write.before](std::vector<ActorWaits> waits) {
    // At the end of a job no actor is left to answer: keep an earlier answer.
    if (waits.empty()) return;
    // A message that was on its way at one moment looks lost.
    if (before.empty()) {
      self->delayed_send(self, kLastingWait, WriteWaits{std::move(waits)});
    } else {
      const auto lasting = LastingWaits(before, waits);
      WriteNextToTraces(self->state.config, kWaitsAskedFile, ToJson(lasting));
    }
  });
}

void OnStalled(NodePointer self, const Stalled& stalled) {
  NodeState& s = self->state;
  if (s.failed || s.ending) return;
  const PlaceText place = [rounds = s.config.rounds](const Wait& wait) {
    return wait.unit == WaitUnit::kMicrobatch && rounds ? PlaceOfMicrobatch(rounds, wait.number)
                                                        : "";
  };
  AskAllWaits(self, [self, since = stalled.since_ns, place](const std::vector<ActorWaits>& before) {
    AskAllWaits(self, [self, since, place, before](const std::vector<ActorWaits>& after) {
      if (self->state.ending || !SameWaits(before, after)) return;
      WriteNextToTraces(self->state.config, kWaitsFile, ToJson(after));
      const WaitRoot root = RootOf(after, place);
      self->state.config.abort->Raise(
          {"nothing has moved anywhere for " + RoughSeconds(since) + ": " + root.text,
           FailureKind::kStall, root.actors});
    });
  });
}

void WriteNextToTraces(const NodeConfig& config, const char* file, const std::string& text) {
  if (!config.trace || config.trace_folder.empty()) return;
  std::error_code ignored;
  if (!std::filesystem::exists(config.trace_folder, ignored))
    return;  // deleted: the cause is known
  try {
    ReplaceFile(config.trace_folder + "/" + file, text);
  } catch (const std::exception& e) {
    if (config.observer) config.observer->OnWarning(e.what());
  }
}

}  // namespace troupe
