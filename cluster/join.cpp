#include "cluster/join.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#include "cluster/descriptors.hpp"
#include "cluster/join_parts.hpp"

namespace troupe {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLongestMeshTime{30'000};
constexpr std::chrono::seconds kFirstProgress{2};
constexpr std::chrono::seconds kProgressEvery{5};

Joined JoinAlone(const JoinOptions& options) {
  Joined joined;
  joined.roster.members = {options.self};
  FillRandom(std::as_writable_bytes(std::span(&joined.roster.nonce, 1)));
  joined.roster.run_directory = options.run_directory;
  return joined;
}

}  // namespace

std::string NameOf(const JoinOptions& options, ProcessId process) {
  const auto index = static_cast<std::size_t>(process);
  if (process < 0) return "process " + std::to_string(process);
  if (process == options.self.process) return options.self.name;
  return index < options.names.size() ? options.names[index] : "n" + std::to_string(process);
}

const Hello* FindMember(const Roster& roster, ProcessId process) {
  const auto found = std::ranges::lower_bound(roster.members, process, {}, &Hello::process);
  return found != roster.members.end() && found->process == process ? &*found : nullptr;
}

TlsUse TlsOf(const JoinOptions& options) {
  return {options.tls, [names = options](ProcessId process) { return NameOf(names, process); }};
}

PlaceLimits PlacesOf(const JoinOptions& options) {
  const std::size_t limit = options.descriptors != 0 ? options.descriptors : DescriptorLimit();
  const int num_processes = options.self.num_processes;
  const PlaceLimits places = PlacesFor(limit, num_processes);
  if (places.total < kPromisedPlaces) {
    options.print(
        options.self.name + ": the limit of open files (ulimit -n), " + std::to_string(limit) +
        ", leaves room for " + std::to_string(places.total) +
        " unauthenticated connections at a time: more of them can delay the meeting; raise it "
        "to " +
        std::to_string(DescriptorsFor(kPromisedPlaces, num_processes)));
  }
  return places;
}

std::chrono::milliseconds MeshTime(const JoinOptions& options) {
  return std::min(options.timeout, kLongestMeshTime);
}

JoinProblem PerhapsLost(JoinProblem problem, const JoinOptions& options) {
  if (options.lasting) problem.fault = JoinFault::kLeft;
  return problem;
}

Progress::Progress(const JoinOptions& options)
    : options_(options), began_(steady_clock::now()), next_(began_ + kFirstProgress) {}

Socket ListenOn(const Address& address) {
  try {
    return Socket::Listen(address);
  } catch (const SocketError& error) {
    throw JoinError({error.what(), JoinFault::kListen});
  }
}

void Progress::Report(Deadline now, const std::function<std::string()>& line) {
  if (now < next_) return;
  next_ = now + kProgressEvery;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - began_).count();
  const auto limit = std::chrono::duration_cast<std::chrono::seconds>(options_.timeout).count();
  options_.print(line() + ", " + std::to_string(seconds) + " of " + std::to_string(limit) + " s");
}

Joined Join(const RunKey& key, JoinOptions options) {
  const Hello& self = options.self;
  if (!options.print) options.print = [](const std::string&) {};
  if (!options.listening) options.listening = [](const Address&) {};
  if (!options.tensors) options.tensors = [](const Hello&, const Hello&) { return false; };
  if (self.process < 0 || self.process >= self.num_processes) {
    throw JoinError({self.name + ": expected a process from 0 to " +
                     std::to_string(self.num_processes - 1) + ", got " +
                     std::to_string(self.process)});
  }
  try {
    if (self.num_processes == 1) return JoinAlone(options);
    return self.process == 0 ? JoinAsFirst(key, options) : JoinAsMember(key, options);
  } catch (const JoinError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw JoinError({error.what()});
  }
}

}  // namespace troupe
