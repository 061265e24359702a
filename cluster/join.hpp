// How the processes of a job find each other: each connects to process 0, proves the run key and
// sends a Hello. When all have joined and agree, each pair of processes gets its connections.
//
//   1  every process listens on its own address; process 0 on the join address
//   2  process p connects to process 0: mutual proof of the run key, then an authenticated Hello
//   3  process 0 checks that the Hellos fit together and sends all processes the same Roster,
//      or the same Refusal
//   4  process p connects to every q < p, once per purpose, with the same mutual proof
//      (with TLS, each of these connections is secured directly after the proof)
//   5  every process sends Ready to process 0, which answers Go; then the others stop listening,
//      and process 0 answers latecomers for as long again
//
// The wire format is in docs/wire.md. A connection that does not prove the key within two seconds
// is closed; thousands of these at a time do not delay a member (cluster/places.hpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cluster/join_problem.hpp"
#include "cluster/run_key.hpp"
#include "cluster/socket.hpp"
#include "transport/data_plane.hpp"

namespace troupe {

class Latecomers;
class TlsContext;

/// The number of a process that waits to take a lost one's place (cluster/spare.hpp).
inline constexpr ProcessId kSpareProcess = -1;

/// A state of the job, or the part of one, that a process holds in memory.
struct HeldState {
  std::string folder;             ///< names the state
  std::string manifest_sum = {};  ///< of its manifest; empty: this process does not have that
  std::int64_t step = 0;          ///< after which it is; with the manifest
  std::vector<std::string> all_files = {};  ///< all files of the state; with the manifest
  std::vector<std::string> files = {};      ///< those that this process has
};

/// A process's description of itself. Errors name the fields in which processes differ.
struct Hello {
  ProcessId process = 0;
  int num_processes = 1;
  std::string name;    ///< "n1", "n1.d0"
  std::string build;   ///< version and commit: must be equal
  std::string config;  ///< the resolved configuration, one "key = value" a line: must be equal
  std::string host;    ///< identity of the machine: see cluster/host_identity.hpp
  /// The first generation of the job that it can belong to: the one after its last, 0 if it is new.
  std::int64_t generation = 0;
  Address address;  ///< the address it listens on
  std::int64_t pid = 0;
  ProcessId former = kSpareProcess;  ///< of a spare that has lost its place: the number that it had
  std::vector<HeldState> held = {};  ///< from the generations before
};

/// Known to every process once the job has met.
struct Roster {
  std::vector<Hello> members;   ///< ascending by process; all, or those that are enough
  std::uint64_t nonce = 0;      ///< of this meeting
  std::int64_t generation = 0;  ///< the latest that a member asks for
  std::string run_directory;    ///< process 0's, as written there
};

/// Returns the member with that number; null if there is none.
const Hello* FindMember(const Roster& roster, ProcessId process);

/// The connections to one other process.
struct Peer {
  ProcessId process = 0;
  Socket control;    ///< for the actor systems; the lower number accepted, the higher connected
  Socket heartbeat;  ///< for cluster/watch.hpp
  /// With TLS, the TCP socket under `heartbeat`: for WatchedPeer::wire.
  Socket heartbeat_wire = {};
  /// For transport/tcp/plane.hpp, if JoinOptions::tensors asks for it, with the key that only the
  /// two ends of this connection have.
  Socket tensors = {};
  std::optional<RunKey> tensors_session = std::nullopt;
};

struct Joined {
  Roster roster;
  std::vector<Peer> peers;  ///< all members but this one, ascending
  /// Process 0 only: still listens, to inform latecomers that the job has met. May be closed at any
  /// time. Null if nothing listens.
  std::shared_ptr<Latecomers> latecomers = nullptr;
};

/// The job could not meet. Every process that process 0 still reaches throws the same problem.
struct JoinError : std::runtime_error {
  explicit JoinError(const JoinProblem& problem)
      : std::runtime_error(problem.text), fault(problem.fault) {}

  JoinFault fault;
};

struct JoinOptions {
  /// Its address.host is the interface to listen on. If empty, process 0 listens on the seed's
  /// host, and the others on the local address of their connection to process 0. Port 0 = any;
  /// process 0 listens on the seed's port.
  Hello self;
  Address seed;               ///< the address process 0 listens on
  std::string run_directory;  ///< process 0 only
  std::chrono::milliseconds timeout{60'000};
  std::function<void(const std::string& line)> print;  ///< progress: "waiting for n2"; may be empty
  std::vector<std::string> names;  ///< by process, for those not joined yet; empty: n0, n1, ...
  /// Called once, on the calling thread, with the address this process listens on; may be empty.
  std::function<void(const Address& address)> listening;
  /// Whether two processes need a connection for their tensors; the same on all processes. Empty:
  /// none do.
  std::function<bool(const Hello& one, const Hello& other)> tensors;
  /// Secures every connection directly after the proof of the run key. Set by all processes or by
  /// none. Must outlive the connections.
  const TlsContext* tls = nullptr;
  /// The limit of open files of this process; 0 = the system's.
  std::size_t descriptors = 0;
  /// Process 0 only: keeps listening for `timeout` after the job has met, see Joined::latecomers.
  bool answer_latecomers = true;
  /// The job goes on after a loss: process 0 answers latecomers as long as it runs, and a process
  /// whose number is taken retries.
  bool lasting = false;
  /// Process 0 only: it begins a new run, and refuses processes that ask for a later generation: they
  /// go on with another.
  bool begins_anew = false;
  /// Process 0, when the job meets again: returns why the processes `present`, ascending, are too few to
  /// go on without the others; "" if they are enough. Empty: all must come.
  std::function<std::string(const std::vector<ProcessId>& present)> why_too_few = {};
  /// For how long it waits then for each of the others, unless it is one of `away`: those that the last
  /// generation did without.
  std::chrono::milliseconds patience{0};
  std::vector<ProcessId> away = {};
  /// Process 0: why the job does not go on; kEnded or kDone. It tells this to all that have come or
  /// come within `refusal_time`.
  std::optional<JoinProblem> refusal = {};
  std::chrono::milliseconds refusal_time{1000};
};

/// Blocks until the job has met: at most options.timeout for all processes to join, and as long
/// again, but no more than 30 s, for their connections. Only resolving the seed's name can take
/// longer. Throws JoinError naming the missing process, the one that differs and its differences,
/// the pair that cannot connect, or the system's error. A job of one process meets at once, without
/// any socket.
///
/// A job that goes on after a loss meets again, as its next generation. A process that comes before
/// process 0 has noticed the loss retries until its timeout. With `why_too_few` it may meet without
/// some processes; the numbers of the others stay. Two processes with one number are an
/// error in generation 0. Later the one that asks for the earlier generation is refused, or the one
/// that comes later.
Joined Join(const RunKey& key, JoinOptions options);

}  // namespace troupe
