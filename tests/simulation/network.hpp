// The part of the simulated world that stands in for the network: TCP connections between machines, and
// the pipes, event counters and sets of descriptors of one machine.
//
// TCP delivers all bytes in their order, or the connection ends. So a loss of packets is a delay here: a
// path between two machines can be cut, in one direction or both, and holds what it should carry until it
// is mended. Connections are delayed independently of each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/epoll.h>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "tests/simulation/kernel.hpp"

namespace troupe::testing {

/// What a descriptor of a simulated process means.
class Endpoint {
 public:
  Endpoint() = default;
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// The events of poll() that are true now.
  virtual short Events() const = 0;
  /// As read() and write(): the number of bytes, or -1 with errno. `peek`: leaves the bytes there.
  virtual ssize_t Read(char* bytes, std::size_t size, bool peek);
  virtual ssize_t Write(const char* bytes, std::size_t size);
  /// The last descriptor is closed, or the process has ended.
  virtual void Close() {}

  bool is_blocking = true;
  int num_descriptors = 0;
};

/// One end of a TCP connection.
class Connection : public Endpoint, public std::enable_shared_from_this<Connection> {
 public:
  Connection(Machine* machine, sockaddr_in local) : machine_(machine), local_(local) {}

  void Connect(sockaddr_in peer);
  short Events() const override;
  ssize_t Read(char* bytes, std::size_t size, bool peek) override;
  ssize_t Write(const char* bytes, std::size_t size) override;
  void Close() override;
  /// As shutdown(SHUT_WR).
  void FinishWriting();
  void Fail(int error);
  /// Looks every few seconds whether the other end is there.
  void KeepAlive();
  /// The error of a connection that was not made, once.
  int TakeError() { return std::exchange(error_, 0); }

  Machine* machine() const { return machine_; }
  const sockaddr_in& local() const { return local_; }
  const sockaddr_in& peer() const { return peer_; }
  bool is_connected() const { return is_connected_; }

  // As the system counts them.
  std::uint64_t num_sent() const { return num_sent_; }
  std::uint64_t num_acknowledged() const { return num_acknowledged_; }
  std::uint32_t num_segments() const { return num_segments_; }
  bool peer_takes_bytes() const;

 private:
  friend class Listener;
  using Arrival = std::function<void(Connection& peer)>;

  /// Does `arrive` at the other end, later.
  void Transmit(Arrival arrive);
  void Acknowledge(std::uint64_t bytes);
  void Reset();

  Machine* machine_;
  sockaddr_in local_;
  sockaddr_in peer_{};
  std::weak_ptr<Connection> other_;
  std::shared_ptr<Connection> held_;  ///< the end that accepts, as long as this one lives
  std::shared_ptr<SimTime> last_arrival_ = std::make_shared<SimTime>(0);  ///< at the other end
  std::shared_ptr<SimTime> last_answer_ =
      std::make_shared<SimTime>(0);  ///< from there, at this end
  std::deque<char> input_;
  bool is_connected_ = false;
  bool is_closed_ = false;
  bool is_finished_ = false;   ///< by the other end
  bool has_finished_ = false;  ///< by this one
  bool is_reset_ = false;
  int error_ = 0;
  std::uint64_t num_sent_ = 0;
  std::uint64_t num_acknowledged_ = 0;
  std::uint32_t num_segments_ = 0;
};

/// A socket that is not connected yet, or listens.
class Listener : public Endpoint {
 public:
  Listener(Machine* machine, sockaddr_in local) : machine_(machine), local_(local) {}
  short Events() const override { return waiting_.empty() ? 0 : POLLIN; }
  void Close() override;
  std::shared_ptr<Connection> Accept();
  /// A connection from another machine arrives.
  void Arrive(const std::shared_ptr<Connection>& from);

  Machine* machine() const { return machine_; }
  const sockaddr_in& local() const { return local_; }

 private:
  Machine* machine_;
  sockaddr_in local_;
  std::deque<std::shared_ptr<Connection>> waiting_;
};

/// Before it is bound, and until it listens or connects.
class NewSocket : public Endpoint {
 public:
  explicit NewSocket(Machine* machine) : machine_(machine) { local.sin_family = AF_INET; }
  short Events() const override { return POLLOUT | POLLHUP; }
  Machine* machine() const { return machine_; }
  sockaddr_in local{};

 private:
  Machine* machine_;
};

class EventCounter : public Endpoint {
 public:
  explicit EventCounter(std::uint64_t count) : count_(count) {}
  short Events() const override { return static_cast<short>(POLLOUT | (count_ > 0 ? POLLIN : 0)); }
  ssize_t Read(char* bytes, std::size_t size, bool peek) override;
  ssize_t Write(const char* bytes, std::size_t size) override;

 private:
  std::uint64_t count_;
};

/// One end of a pipe.
class PipeEnd : public Endpoint {
 public:
  struct Pipe {
    std::deque<char> bytes;
    bool is_read = true;     ///< the end for reading is open
    bool is_written = true;  ///< so is the one for writing
  };
  PipeEnd(std::shared_ptr<Pipe> pipe, bool reads) : pipe_(std::move(pipe)), reads_(reads) {}
  short Events() const override;
  ssize_t Read(char* bytes, std::size_t size, bool peek) override;
  ssize_t Write(const char* bytes, std::size_t size) override;
  void Close() override { (reads_ ? pipe_->is_read : pipe_->is_written) = false; }

 private:
  std::shared_ptr<Pipe> pipe_;
  bool reads_;
};

/// epoll: a set of descriptors.
class DescriptorSet : public Endpoint {
 public:
  short Events() const override { return Ready(nullptr, 1) > 0 ? POLLIN : 0; }
  int Control(int operation, int descriptor, const epoll_event* event);
  /// Fills `events`, if that is not null.
  int Ready(epoll_event* events, int most) const;

 private:
  std::map<int, std::pair<std::weak_ptr<Endpoint>, epoll_event>> watched_;
};

class Network {
 public:
  explicit Network(Kernel& kernel);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  static Network& Current();

  /// Delays of one way, drawn for every packet.
  SimTime least_delay = Ms(0.05);
  SimTime most_delay = Ms(0.3);

  /// From now on nothing gets from one machine to another; what is under way waits.
  void Cut(const Machine* from, const Machine* to);
  bool IsCut(const Machine* from, const Machine* to) const {
    return cut_.contains({from->number, to->number});
  }
  void Mend(const Machine* from, const Machine* to);
  /// Drops what waits on the paths from and to a machine.
  void Discard(const Machine* machine);
  /// Ends what a process that has ended had open.
  void CloseAll(const SimProcess* process);

  // For the endpoints.

  /// Calls `arrive` on the other machine, not before `*last`, which becomes its time.
  void Send(const Machine* from, const Machine* to, SimTime* last, std::function<void()> arrive);
  Machine* MachineAt(std::uint32_t address);
  Listener* ListenerAt(const Machine* machine, std::uint16_t port);
  void AddMachine(Machine* machine) { machines_.push_back(machine); }
  /// Fills in what is not set. Returns false if the port is taken.
  bool Bind(const Machine* machine, sockaddr_in* address);
  sockaddr_in AddressOf(const Machine* machine);

  // For the functions of the C library.

  /// Returns a new descriptor of `process`.
  int Open(const std::shared_ptr<Endpoint>& endpoint, const SimProcess* process);
  /// Null: it is no descriptor of this world.
  std::shared_ptr<Endpoint> Find(int descriptor) const;
  const SimProcess* OwnerOf(int descriptor) const;
  void Replace(int descriptor, const std::shared_ptr<Endpoint>& endpoint);
  /// Returns false if it is no descriptor of this world.
  bool Close(int descriptor);

 private:
  struct Entry {
    std::shared_ptr<Endpoint> endpoint;
    const SimProcess* process;
  };
  using Path = std::pair<int, int>;

  Kernel& kernel_;
  std::vector<Machine*> machines_;
  std::map<int, Entry> entries_;
  std::map<std::pair<int, std::uint16_t>, Listener*> listeners_;
  std::map<Path, std::vector<std::function<void()>>> cut_;  ///< what waits on paths that are cut
  std::uint16_t next_port_ = 40'000;

  friend class Listener;
};

}  // namespace troupe::testing
