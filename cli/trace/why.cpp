#include "trace/analyze/why.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>
#include <system_error>

#include "actors/names.hpp"
#include "actors/wait_root.hpp"
#include "actors/waits_file.hpp"
#include "cli/trace/trace.hpp"
#include "cli/trace/waits.hpp"
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
  const bool window = wait.unit == "window";
  if (!window && wait.unit != "microbatch") return "";
  const std::string place = ToString(places.OfUnit(wait.number, window));
  return place.empty() ? "" : " (" + place + ')';
}

/// The chain of waits from `who` on, to an actor that waits for none or comes again.
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
  if (seen.count(who) > 0) text += "... and so on: they wait in a circle\n";
  return text;
}

/// What the actors with these names did last.
void PrintDoings(const OpenedTrace& run, const Usual& usual,
                 const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto& actors = run.trace.actors;
    const auto found = std::ranges::find(actors, name, &TraceActor::name);
    if (found == actors.end()) continue;
    std::cout << LastDoings(run.index, usual, static_cast<int>(found - actors.begin()));
  }
}

/// `event` is when they waited: "the run stalled".
void PrintWaits(const OpenedTrace& run, const Usual& usual, const std::string& event,
                const std::vector<ActorWaits>& waits, const std::string& from) {
  std::string who = from;
  if (!from.empty()) {
    for (const int actor : ActorsNamed(run.trace, from)) {
      if (Find(waits, run.index.ActorName(actor)) != nullptr) who = run.index.ActorName(actor);
    }
  } else {
    who =
        Find(waits, kDirectorName) != nullptr || waits.empty() ? kDirectorName : waits.front().who;
  }
  const WaitRoot root =
      RootOf(waits, [&](const Wait& wait) { return PlaceIn(run.index.places(), wait); });
  std::cout << event << "; who waited for whom:\n\n"
            << ChainFrom(run.index.places(), waits, who) << "\nroot: " << root.text << "\n\n";
  PrintDoings(run, usual, root.actors);
}

/// The file, with what is wrong with it said: the trace can still be asked.
WaitsFile UsableWaits(const std::string& run_directory, const std::string& name) {
  WaitsFile file = ReadWaits(run_directory, name);
  if (!file.problem.empty()) {
    std::cout << "not used: " << file.problem << "; what follows is from the trace alone\n";
  }
  return file;
}

/// They are the last thing that a training writes.
bool HasWeights(const std::string& run_directory) {
  const std::filesystem::path trace = NewestTraceFolder(run_directory);
  std::error_code unknown;
  return std::filesystem::exists(trace.parent_path() / "weights.safetensors", unknown);
}

int ExplainRun(const WhyArguments& arguments) {
  const OpenedTrace run(arguments.run);
  const Usual usual(run.index);
  std::cout << WhatIsMissing(run.trace);
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
    // It is no longer of interest once the run has ended well.
    const bool over = cause.empty() && open.empty() && HasWeights(arguments.run);
    if (!asked.actors.empty() && !over) {
      PrintWaits(run, usual, "when it was last asked by SIGUSR1", asked.actors, arguments.actor);
    }
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
      "Explain a wait down to its root: what the message that ended it had been waiting\n"
      "for, who was busy with what for how long, and how long that usually takes. Of a run\n"
      "that stalled: who waited for whom, and what the one at the end did last.",
      arguments->run);
  verb->add_option("--actor", arguments->actor,
                   "whose longest wait (part of a name, as language.s1); default: the device "
                   "that waited for what took longest beyond its usual time")
      ->type_name("A");
  AddStep(*verb, arguments->step,
          "in which training step (default: the stall; else the step that took longest)");
  SetAction(*verb, command, [arguments] { return ExplainRun(*arguments); });
}

}  // namespace troupe
