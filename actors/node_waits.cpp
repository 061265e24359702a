#include "actors/node_waits.hpp"

#include <exception>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include "actors/names.hpp"
#include "actors/wait_root.hpp"
#include "actors/waits_file.hpp"

namespace troupe {
namespace {

/// Adds those that cannot be asked: whether they are in a handler.
void AddSilent(const NodeConfig& config, std::vector<ActorWaits>& all) {
  if (!config.actors) return;
  std::set<std::string> told;
  for (const ActorWaits& actor : all) told.insert(actor.who);
  for (const auto& entry : config.actors->List()) {
    if (told.count(entry.name) != 0) continue;
    ActorWaits actor;
    actor.who = entry.name;
    // With messages that it has not read, nothing is known of what it owes.
    actor.busy = entry.activity->busy() || entry.activity->unread() > 0;
    all.push_back(std::move(actor));
  }
}

/// What the actors of all processes wait for.
void AskAllWaits(NodePointer self, std::function<void(std::vector<ActorWaits>)> then) {
  struct Gather {
    std::vector<ActorWaits> actors;
    std::size_t missing = 0;
    std::function<void(std::vector<ActorWaits>)> then;
  };
  auto gather = std::make_shared<Gather>();
  gather->missing = self->state.nodes.size();
  gather->then = std::move(then);
  const auto answered = [gather] {
    if (--gather->missing == 0) gather->then(std::move(gather->actors));
  };
  for (const auto& [process, node] : self->state.nodes) {
    self->request(node, std::chrono::milliseconds(1000), ReportWaits{})
        .then(
            [gather, answered](const Waits& waits) {
              gather->actors.insert(gather->actors.end(), waits.actors.begin(), waits.actors.end());
              answered();
            },
            [answered](const caf::error&) { answered(); });
  }
}

}  // namespace

caf::result<Waits> CollectWaits(NodePointer self) {
  struct Gather {
    Waits waits;
    std::size_t missing = 0;
    caf::typed_response_promise<Waits> promise;
  };
  auto gather = std::make_shared<Gather>();
  gather->promise = self->make_response_promise<Waits>();
  const auto answered = [self, gather] {
    if (--gather->missing > 0) return;
    const NodeConfig& config = self->state.config;
    auto& all = gather->waits.actors;
    if (config.group_waits) {
      for (auto& wait : config.group_waits->List()) all.push_back(std::move(wait));
    }
    AddSilent(config, all);
    const auto& processes = config.processes->processes();
    if (processes.size() > 1) {
      const std::string& node = processes[static_cast<std::size_t>(config.self)].name;
      for (ActorWaits& actor : all) actor.node = node;
    }
    gather->promise.deliver(gather->waits);
  };
  gather->missing = 1;
  for (const caf::actor& child : self->state.owned) {
    if (!self->state.waiting.count(child.address())) continue;
    ++gather->missing;
    self->request(caf::actor_cast<Waiting>(child), std::chrono::milliseconds(500), ReportWaits{})
        .then(
            [gather, answered](const Waits& waits) {
              auto& all = gather->waits.actors;
              all.insert(all.end(), waits.actors.begin(), waits.actors.end());
              answered();
            },
            [gather, answered, name = self->state.children.at(child.address())](const caf::error&) {
              gather->waits.actors.push_back({name, "", true, {}, {}});
              answered();
            });
  }
  answered();
  return gather->promise;
}

void OnTellWaits(NodePointer self) {
  NodeState& s = self->state;
  const auto first = s.nodes.find(0);
  if (s.config.self != 0 && first != s.nodes.end()) return self->send(first->second, TellWaits{});
  AskAllWaits(self, [self](const std::vector<ActorWaits>& waits) {
    // At the end of a job nobody is left to answer: an earlier answer is worth more.
    if (!waits.empty()) KeepBesideTraces(self->state.config, kWaitsAskedFile, ToJson(waits));
  });
}

/// "12 s", "0.5 s".
std::string Seconds(std::int64_t ns) {
  char text[32];
  const double seconds = static_cast<double>(ns) * 1e-9;
  std::snprintf(text, sizeof text, seconds < 9.95 ? "%.1f s" : "%.0f s", seconds);
  return text;
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

void OnStalled(NodePointer self, const Stalled& stalled) {
  NodeState& s = self->state;
  if (s.failed || s.ending) return;
  const PlaceText place = [rounds = s.config.rounds](const Wait& wait) {
    return wait.unit == "microbatch" && rounds ? PlaceOfMicrobatch(rounds, wait.number) : "";
  };
  AskAllWaits(self, [self, since = stalled.since_ns, place](const std::vector<ActorWaits>& before) {
    AskAllWaits(self, [self, since, place, before](const std::vector<ActorWaits>& after) {
      if (self->state.ending || !SameWaits(before, after)) return;
      KeepBesideTraces(self->state.config, kWaitsFile, ToJson(after));
      const WaitRoot root = RootOf(after, place);
      self->state.config.abort->Raise(
          {"nothing has moved anywhere for " + Seconds(since) + ": " + root.text,
           FailureKind::kStall, root.actors});
    });
  });
}

void KeepBesideTraces(const NodeConfig& config, const char* file, const std::string& text) {
  if (!config.trace || config.trace_folder.empty()) return;
  std::error_code ignored;
  if (!std::filesystem::exists(config.trace_folder, ignored)) return;  // deleted: the cause says so
  try {
    WriteTextFile(config.trace_folder + "/" + file, text);
  } catch (const std::exception& e) {
    if (config.observer) config.observer->OnWarning(e.what());
  }
}

}  // namespace troupe
