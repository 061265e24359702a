#include "trace/analyze/why.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>
#include <system_error>

#include "actors/wait_lists.hpp"
#include "app/run_directory.hpp"
#include "checkpoint/saved_parameters.hpp"
#include "cli/trace/trace.hpp"
#include "cli/trace/waits.hpp"
#include "layout/text.hpp"
#include "trace/actor_id.hpp"
#include "trace/analyze/messages.hpp"
#include "trace/analyze/stall.hpp"
#include "trace/analyze/summary.hpp"

namespace troupe {
namespace {

struct WhyArguments {
  std::string run;
  std::string actor;
  std::int64_t step = 0;
};

const ActorWaits* Find(const std::vector<ActorWaits>& all, const std::string& who) {
  for (const ActorWaits& actor : all) {
    if (actor.who == who && !actor.waits.empty()) return &actor;
  }
  return nullptr;
}

/// " (step 3 mb 7)" of a wait for a microbatch or a window, which waits count from the start.
std::string PlaceIn(const Places& places, const Wait& wait) {
  const bool window = wait.unit == WaitUnit::kWindow;
  if (!window && wait.unit != WaitUnit::kMicrobatch) return "";
  return InParentheses(places.OfUnit(wait.number, window));
}

/// The chain of waits from an actor to one that does not wait or repeats.
std::string ChainFrom(const Places& places, const std::vector<ActorWaits>& all, std::string who) {
  std::string text;
  std::set<std::string> seen;
  for (const ActorWaits* actor = Find(all, who); actor != nullptr && seen.insert(who).second;
       actor = Find(all, who)) {
    const Wait& wait = actor->waits.front();
    text += actor->who + (actor->node.empty() ? "" : " on " + actor->node) + " waits for " +
            ToString(wait) + PlaceIn(places, wait) + '\n';
    who = wait.whom;
  }
  if (seen.count(who) > 0) text += "... and so on: the waits form a cycle\n";
  return text;
}

/// Prints the last handlers and passes of the actors with these names.
void PrintDoings(const OpenedTrace& run, const Usual& usual,
                 const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto& actors = run.trace.actors;
    const auto found = std::ranges::find(actors, name, &TraceActor::name);
    if (found == actors.end()) continue;
    std::cout << LastActivity(run.index, usual, static_cast<int>(found - actors.begin()));
  }
}

/// `event` is the time of the waits: "the run stalled".
void PrintWaits(const OpenedTrace& run, const Usual& usual, const std::string& event,
                const std::vector<ActorWaits>& waits, const std::string& from) {
  std::string who = from;
  if (!from.empty()) {
    for (const int actor : ActorsNamed(run.trace, from)) {
      if (Find(waits, run.index.ActorName(actor)) != nullptr) who = run.index.ActorName(actor);
    }
  } else {
    const std::string director = ToString(DirectorActor());
    who = Find(waits, director) != nullptr || waits.empty() ? director : waits.front().who;
  }
  const WaitRoot root =
      RootOf(waits, [&](const Wait& wait) { return PlaceIn(run.index.places(), wait); });
  std::cout << event << "; the chain of waits:\n\n"
            << ChainFrom(run.index.places(), waits, who) << "\nroot: " << root.text << "\n\n";
  PrintDoings(run, usual, root.actors);
}

void PrintAskedWaits(const OpenedTrace& run, const Usual& usual,
                     const std::vector<ActorWaits>& waits, const std::string& from) {
  const std::string event = "when it was last asked by SIGUSR1";
  if (std::ranges::all_of(waits, [](const ActorWaits& actor) { return actor.waits.empty(); })) {
    std::cout << event << ", no wait had lasted " << InSeconds(kLastingWait) << "\n\n";
  } else {
    PrintWaits(run, usual, event, waits, from);
  }
}

/// Reads the file, and reports its faults: the trace can still be analyzed.
WaitsFile UsableWaits(const std::string& run_directory, const std::string& name) {
  WaitsFile file = ReadWaits(run_directory, name);
  if (!file.problem.empty()) {
    std::cout << "not used: " << file.problem << "; what follows is from the trace alone\n";
  }
  return file;
}

/// Whether the training ended: it writes the weights last.
bool HasWeights(const std::string& run_directory) {
  const std::filesystem::path trace = NewestTraceFolder(run_directory);
  std::error_code unknown;
  return std::filesystem::exists(trace.parent_path() / kWeightsFile, unknown);
}

int ExplainRun(const WhyArguments& arguments) {
  const OpenedTrace run(arguments.run);
  const Usual usual(run.index);
  std::cout << DescribeGaps(run.trace);
  const WaitsFile stalled = UsableWaits(arguments.run, kWaitsFile);
  if (!stalled.actors.empty() && arguments.step == 0) {
    PrintWaits(run, usual, "the run stalled", stalled.actors, arguments.actor);
    return kExitDone;
  }
  if (arguments.step == 0) {
    const Failure cause = CauseOf(arguments.run);
    if (!cause.empty()) std::cout << "the run failed: " << cause.text << "\n\n";
    const std::string open = Format(FindStall(run.index, usual), run.index);
    if (!open.empty()) std::cout << "when the trace ended:\n" << open << '\n';
    const WaitsFile asked = UsableWaits(arguments.run, kWaitsAskedFile);
    // Irrelevant once the run has ended well.
    const bool over = cause.empty() && open.empty() && HasWeights(arguments.run);
    if (!asked.actors.empty() && !over) PrintAskedWaits(run, usual, asked.actors, arguments.actor);
    PrintDoings(run, usual, cause.actors);
    if (!cause.empty() && arguments.actor.empty()) return kExitDone;
  }
  std::vector<int> actors;
  if (!arguments.actor.empty()) actors = ActorsNamed(run.trace, arguments.actor);
  const StepSpan& span =
      arguments.step == 0 ? SlowestStep(run.steps) : run.steps.Of(arguments.step);
  std::cout << Format(ExplainWait(run.index, usual, span, actors), run.index, usual);
  return kExitDone;
}

}  // namespace

void AddTraceWhy(CLI::App& trace, Command& command) {
  auto arguments = std::make_shared<WhyArguments>();
  auto* verb = AddRunVerb(
      trace, "why",
      "Explain a wait down to its root: the chain of messages before the one that ended it,\n"
      "the actors that were busy, with which work and for how long, and how long that usually\n"
      "takes. Of a run that stalled: the chain of waits, and the last work of the actor at its\n"
      "end.",
      arguments->run);
  verb->add_option("--actor", arguments->actor,
                   "actor whose longest wait to explain (part of a name, as language.s1); default: "
                   "the device whose wait exceeded its usual time most")
      ->type_name("A");
  AddStep(*verb, arguments->step,
          "training step (default: the stall; else the step that took longest)");
  SetAction(*verb, command, [arguments] { return ExplainRun(*arguments); });
}

}  // namespace troupe
