#include "app/feed.hpp"

#include <charconv>
#include <chrono>
#include <iostream>
#include <sys/types.h>
#include <thread>
#include <unistd.h>

#include "app/cause.hpp"
#include "app/exit_code.hpp"
#include "app/member.hpp"
#include "app/resume.hpp"
#include "app/run_job.hpp"
#include "app/run_spec.hpp"
#include "app/version.hpp"
#include "app/work.hpp"
#include "cluster/environment.hpp"
#include "cluster/host_identity.hpp"
#include "cluster/variables.hpp"
#include "configs/paths.hpp"
#include "feed/machine.hpp"
#include "files/usable_cores.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

void Say(const std::string& line) { std::cerr << line + "\n" << std::flush; }

/// What the samples of a job depend on. Paths and the numbers of threads may differ.
std::string FactsOf(const Config& config, const RowSource& rows) {
  const auto decides = [](const std::string& key, const KeySpec& spec) {
    return key.starts_with("data.") && spec.role != KeyRole::kExecution && !HoldsPath(spec);
  };
  return KeyLines(config, decides) + rows.FormatText() +
         "data.train (rows) = " + rows.rows(true).facts_digest() +
         "\ndata.held_out (rows) = " + rows.rows(false).facts_digest() + "\n";
}

/// Throws JoinError if the name does not resolve.
std::unique_ptr<TlsContext> TlsOfFeed(const Config& config, const Address& at) {
  return TlsOf(config.cluster, at, std::chrono::milliseconds(0));
}

/// The same on a machine: its name may appear later than the job's host.
std::unique_ptr<TlsContext> AwaitTls(const Config& config, const Address& at,
                                     const std::optional<std::int64_t>& wait_s) {
  constexpr std::chrono::milliseconds kAgain{500};
  constexpr int kTimesPerLine = 20;
  const auto begin = std::chrono::steady_clock::now();
  for (int times = 0;; ++times) {
    try {
      return TlsOfFeed(config, at);
    } catch (const JoinError& e) {
      const bool is_over =
          wait_s && std::chrono::steady_clock::now() - begin > std::chrono::seconds(*wait_s);
      if (is_over) throw;
      if (times % kTimesPerLine == 0)
        Say("waiting for the job at " + ToString(at) + " (" + e.what() + ")");
    }
    std::this_thread::sleep_for(kAgain);
  }
}

TlsUse UseOf(const TlsContext* context) {
  return {context, [](ProcessId process) {
            return process == kFeedMachine ? "the feed machine" : "the job";
          }};
}

/// "f1" for "1/2".
std::string NameOf(const std::string& node) {
  const auto fail = [&] {
    throw LaunchError("--node: expected I/N, such as 0/2 for the first of two, got \"" + node +
                      "\"");
  };
  const char* const end = node.data() + node.size();
  int number = -1;
  int all = 0;
  const auto first = std::from_chars(node.data(), end, number);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '/') fail();
  const auto second = std::from_chars(first.ptr + 1, end, all);
  if (second.ec != std::errc() || second.ptr != end || number < 0 || number >= all) fail();
  return "f" + std::to_string(number);
}

Address AddressOf(const std::string& source, const std::string& text) {
  try {
    const Address address = ParseAddress(text);
    if (address.port == 0) throw std::invalid_argument("expected a port from 1 to 65535, got 0");
    return address;
  } catch (const std::invalid_argument& e) {
    throw LaunchError(source + ": " + e.what());
  }
}

RunKey ReadFeedKey(const std::string& path) {
  if (path.empty()) {
    throw LaunchError(
        "a feed machine needs the run key of the job, or better a feed key: make one with `troupe "
        "key "
        "FILE --feed-of RUN_KEY`, then pass --key-file FILE or set TROUPE_KEY_FILE");
  }
  try {
    return RunKey::ReadFeedFile(path);
  } catch (const std::runtime_error& e) {
    throw LaunchError(e.what());
  }
}

int ExitCodeOf(const JoinProblem& end) {
  if (end.fault == JoinFault::kDone) {
    std::cout << end.text << '\n' << std::flush;
    return kExitDone;
  }
  const bool has_failed = end.fault == JoinFault::kEnded;
  PrintCause((has_failed ? "the job failed: " : "") + end.text);
  return has_failed ? kExitFailed : kExitNotMet;
}

}  // namespace

bool TakesFeed(const Config& config) { return !config.data.feed_address.empty(); }

FeedEntrance::FeedEntrance(const Config& config, const RowSource& rows, const RunKey& run_key,
                           const std::string& host) {
  const Address at = AddressOf("data.feed_address", config.data.feed_address);
  const bool leads = host.empty();
  try {
    tls_ = TlsOfFeed(config, at);
    port_ = std::make_unique<FeedPort>(Socket::Listen(leads ? at : Address{host, 0}),
                                       FeedPortOptions{run_key.Feed(), leads, UseOf(tls_.get()),
                                                       VersionText(), FactsOf(config, rows), Say});
  } catch (const LaunchError&) {
    throw;
  } catch (const std::runtime_error& e) {
    throw LaunchError(std::string("data.feed_address: ") + e.what());
  }
}

std::unique_ptr<FeedEntrance> OpenFeed(const RunSpec& run, const Work& work,
                                       const std::function<RunKey()>& key,
                                       const std::string& host) {
  if (!TakesFeed(run.config()) || work.rows() == nullptr || run.arguments.work.verify)
    return nullptr;
  return std::make_unique<FeedEntrance>(run.config(), *work.rows(), key(), host);
}

void FeedEntrance::End(const Failure& failure, bool interrupted) {
  if (!failure.empty()) return port_->End({failure.text, JoinFault::kEnded});
  port_->End(interrupted ? JoinProblem{"the job was interrupted", JoinFault::kDone}
                         : DoneProblem());
}

int RunFeed(const FeedArguments& arguments) {
  const LoadedConfig loaded = LoadConfigOf(arguments.config, -1);
  const Config& config = loaded.config;
  if (!arguments.at && !TakesFeed(config)) {
    throw LaunchError(
        arguments.config.path +
        ": data.feed_address is not set: a job of it takes no samples of feed machines");
  }
  const Address at = arguments.at ? AddressOf("--at", *arguments.at)
                                  : AddressOf("data.feed_address", config.data.feed_address);
  const RunKey key = ReadFeedKey(arguments.key_file);
  const auto rows = std::dynamic_pointer_cast<RowSource>(OpenInputs(config));
  if (!rows) throw LaunchError(arguments.config.path + ": its modules read no data");
  FeedMachineOptions options{key, at};
  options.hello.name = arguments.node ? NameOf(*arguments.node) : HostName();
  options.hello.build = VersionText();
  options.hello.facts = FactsOf(config, *rows);
  options.hello.pid = getpid();
  options.threads = arguments.threads > 0 ? arguments.threads : UsableCores();
  if (arguments.wait_s) options.patience = std::chrono::seconds(*arguments.wait_s);
  options.print = Say;
  Say("feed machine " + options.hello.name + ": " + Counted(options.threads, "thread") +
      ", for the job at " + ToString(at));
  std::unique_ptr<TlsContext> tls;
  try {
    tls = AwaitTls(config, at, arguments.wait_s);
  } catch (const JoinError& e) {
    PrintCause(e.what());
    return kExitNotMet;
  }
  options.tls = UseOf(tls.get());
  QuickExit(ExitCodeOf(RunFeedMachine(options, *rows)));  // a thread may still use these
}

}  // namespace troupe
