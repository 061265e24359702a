#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <sys/ioctl.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "app/child.hpp"
#include "app/run_directory.hpp"
#include "app/run_events.hpp"
#include "cli/commands.hpp"
#include "trace/analyze/live.hpp"
#include "trace/clock.hpp"
#include "trace/run_files.hpp"

namespace troupe {
namespace {

struct TopArguments {
  std::string run;
  double every_s = 1.0;
  bool once = false;
};

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::size_t kShownEvents = 3;

/// Whether the newest record is recent, so that the job's processes use this machine's clock.
bool IsLive(std::int64_t newest_ns, std::int64_t now_ns) {
  return newest_ns <= now_ns && now_ns - newest_ns < 3600 * kSecondNs;
}

/// Whether the process runs; a zombie has ended.
bool Runs(std::int64_t pid) {
  const auto state = StateOf(static_cast<pid_t>(pid));
  return state && state->letter != 'Z' && state->letter != 'X';
}

bool AnyRuns(const std::vector<TraceFile>& files) {
  return std::ranges::any_of(files, [](const TraceFile& file) { return Runs(file.pid); });
}

std::size_t LinesOfTerminal() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 6;
  return known ? size.ws_row - 5U : 1000;
}

/// Prints the current state of the run. Returns whether the job still runs.
bool Show(const TopArguments& arguments, bool terminal) {
  const RunFiles read = ReadRunFiles(arguments.run);
  const std::vector<TraceFile>& files = read.files;
  const std::int64_t newest_ns = NewestTime(files);
  const std::int64_t now_ns = NowNs();
  const bool runs = IsLive(newest_ns, now_ns) && AnyRuns(files);
  std::uint64_t noted = 0;
  for (const TraceFile& file : files) noted += file.noted;
  if (terminal) std::cout << "\033[H\033[2J";
  std::cout << arguments.run << ": " << files.size()
            << (files.size() == 1 ? " process, " : " processes, ") << noted
            << " messages and passes noted; "
            << (runs ? "running" : "not running on this machine: as its newest message left it")
            << '\n';
  for (const std::string& line : read.skipped) std::cout << "not read: " << line << '\n';
  const std::vector<RunEvent> events = EventsOf(arguments.run);
  for (std::size_t i = events.size() - std::min(events.size(), kShownEvents); i < events.size();
       ++i) {
    std::cout << ToLine(events[i]) << '\n';
  }
  std::cout << '\n'
            << Format(ActorsNow(files, runs ? now_ns : newest_ns),
                      terminal ? LinesOfTerminal() : 1000)
            << std::flush;
  return runs;
}

int Top(const TopArguments& arguments) {
  const bool terminal = isatty(STDOUT_FILENO) == 1 && !arguments.once;
  while (Show(arguments, terminal) && !arguments.once) {
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.every_s));
  }
  return kExitDone;
}

}  // namespace

void AddTop(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "top",
      "Show the actors of a run: the running handler, messages that wait and for how long, the\n"
      "last handler, credits left. Reads only the traces in the run directory, so it works on a\n"
      "job that is stuck or was killed. Runs until the job ends.\n"
      "Exit code: 0 done, 1 there is nothing to read, 2 wrong arguments.");
  auto arguments = std::make_shared<TopArguments>();
  verb->add_option("RUN", arguments->run, "run directory; runs/latest, or NAME for the newest")
      ->required()
      ->transform(FindRun);
  verb->add_option("--every", arguments->every_s, "seconds between updates")
      ->type_name("S")
      ->check(CLI::Range(0.05, 3600.0));
  verb->add_flag("--once", arguments->once, "print once and exit");
  SetCommand(*verb, command, [arguments] { return Top(*arguments); });
}

}  // namespace troupe
