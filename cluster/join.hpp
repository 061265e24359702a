// How the processes of a job find each other: everybody connects to process 0, shows the run key,
// says who it is; when all are there and agree, each pair of processes gets its connections.
//
//   1  every process listens on its own address; process 0 on the join address
//   2  process p connects to process 0: mutual proof of the run key, then a Hello, authenticated
//   3  process 0 checks that the Hellos fit together and answers all with a Roster or one refusal,
//      the same for everybody
//   4  process p connects to every q < p, once per purpose, with the same mutual proof
//   (with TLS, every one of these connections is secured directly after the proof)
//   5  everybody says "ready" to process 0, which says "go"; then the others stop listening, and
//      process 0 answers those that come too late for as long again
//
// The wire is in docs/wire.md. A connection that does not prove the key within two seconds is
// closed; thousands at a time do not delay a member (cluster/places.hpp).
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

/// What one process says of itself. Differences between processes are refused by name.
struct Hello {
  ProcessId process = 0;
  int num_processes = 1;
  std::string name;    ///< "n1", "n1.d0"
  std::string build;   ///< version and commit: must be equal
  std::string config;  ///< the resolved configuration, one "key = value" a line: must be equal
  std::string host;    ///< identity of the machine: see cluster/host_identity.hpp
  std::int64_t attempt = 0;  ///< restarts before this one: must be equal
  Address address;           ///< where it listens
  std::int64_t pid = 0;
};

/// What everybody knows once the job has met.
struct Roster {
  std::vector<Hello> members;  ///< by process
  std::uint64_t nonce = 0;     ///< of this run
  std::string run_directory;   ///< process 0's, as it wrote it
};

/// One other process, connected.
struct Peer {
  ProcessId process = 0;
  Socket control;    ///< for the actor systems; the lower number accepted, the higher connected
  Socket heartbeat;  ///< for cluster/watch.hpp
  /// With TLS, the TCP socket below `heartbeat`: for WatchedPeer::wire.
  Socket heartbeat_wire = {};
  /// For transport/tcp/plane.hpp, where JoinOptions::tensors wants it; with the key that only the
  /// two ends of this connection have.
  Socket tensors = {};
  std::optional<RunKey> tensors_session = std::nullopt;
};

struct Joined {
  Roster roster;
  std::vector<Peer> peers;  ///< everybody but this process, ascending
  /// Process 0: still listens, to say that the job has met. It may be closed at any time. Null
  /// where nothing listens.
  std::shared_ptr<Latecomers> latecomers = nullptr;
};

/// A job that could not meet. Every process that process 0 still reaches throws the same problem.
struct JoinError : std::runtime_error {
  explicit JoinError(const JoinProblem& problem)
      : std::runtime_error(problem.text), fault(problem.fault) {}

  JoinFault fault;
};

struct JoinOptions {
  /// Its address.host is the interface to listen on. Empty: process 0 listens on the seed's host,
  /// the others on the address that their connection to process 0 has here. Port 0 = any; process 0
  /// listens on the seed's port.
  Hello self;
  Address seed;               ///< where process 0 listens
  std::string run_directory;  ///< process 0 only
  std::chrono::milliseconds timeout{60'000};
  std::function<void(const std::string& line)> say;  ///< progress: "waiting for n2"; may be empty
  std::vector<std::string> names;  ///< by process, for those not heard of yet; empty: n0, n1, ...
  /// Called once, on the calling thread, with where this process listens; may be empty.
  std::function<void(const Address& address)> listening;
  /// Whether two processes are to have a connection for their tensors; the same on all processes.
  /// Empty: none has.
  std::function<bool(const Hello& one, const Hello& other)> tensors;
  /// Secures every connection, from directly after the proof of the run key on. All processes or
  /// none. It must outlive the connections.
  const TlsContext* tls = nullptr;
  /// Open files that this process may have; 0 = what the system says.
  std::size_t descriptors = 0;
  /// Process 0: listens for `timeout` more after the job has met, see Joined::latecomers.
  bool answer_latecomers = true;
};

/// Blocks until the job has met: at most options.timeout for everybody to come, and as long again,
/// but no more than 30 s, for the connections between all. Only resolving the seed's name can take
/// longer. Throws JoinError naming who is missing, who differs and in what, who cannot reach whom,
/// or what the system refused. A job of one process meets at once, without any socket.
///
/// A process that joins with another `attempt` than process 0 is told to come back and does so
/// until its timeout: what is left of the attempt before may overlap with this one.
Joined Join(const RunKey& key, const JoinOptions& options);

}  // namespace troupe
