#include "tests/simulation/network.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "tests/simulation/real_calls.hpp"

namespace troupe::testing {
namespace {

/// Bytes on their way to a process, or not read by it yet, before its peer must wait.
constexpr std::size_t kWindow = 64 << 10;
constexpr SimTime kConnectTime = Ms(20'000);
constexpr SimTime kProbeTime = Ms(5000);

Network* network = nullptr;

std::uint16_t PortOf(const sockaddr_in& address) { return ntohs(address.sin_port); }

ssize_t Fails(int error) {
  errno = error;
  return -1;
}

ssize_t TakeBytes(std::deque<char>& from, char* bytes, std::size_t size, bool peek) {
  const std::size_t count = std::min(size, from.size());
  std::copy_n(from.begin(), count, bytes);
  if (!peek) from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
  return static_cast<ssize_t>(count);
}

}  // namespace

ssize_t Endpoint::Read(char*, std::size_t, bool) { return Fails(EINVAL); }
ssize_t Endpoint::Write(const char*, std::size_t) { return Fails(ENOTCONN); }

// Connections.

void Connection::Transmit(Arrival arrive) {
  Machine* const to = network->MachineAt(ntohl(peer_.sin_addr.s_addr));
  if (to == nullptr) return;
  network->Send(machine_, to, last_arrival_.get(),
                [from = weak_from_this(), here = machine_, to, other = other_,
                 answer = last_answer_, arrive = std::move(arrive)] {
                  if (const auto peer = other.lock()) {
                    ++peer->num_segments_;
                    return arrive(*peer);
                  }
                  // The peer's machine does not know this connection any more.
                  network->Send(to, here, answer.get(), [from] {
                    if (const auto sender = from.lock()) sender->Fail(ECONNRESET);
                  });
                });
}

void Connection::Connect(sockaddr_in peer) {
  peer_ = peer;
  if (ntohl(peer_.sin_addr.s_addr) == INADDR_LOOPBACK) peer_.sin_addr = local_.sin_addr;
  Machine* const to = network->MachineAt(ntohl(peer_.sin_addr.s_addr));
  const auto self = shared_from_this();
  Kernel::Current().After(kConnectTime, [weak = weak_from_this()] {
    const auto waiting = weak.lock();
    if (waiting && !waiting->is_connected_) waiting->Fail(ETIMEDOUT);
  });
  if (to == nullptr) return;
  network->Send(machine_, to, last_arrival_.get(), [self, to] {
    Listener* const listener = network->ListenerAt(to, PortOf(self->peer_));
    if (listener != nullptr) return listener->Arrive(self);
    network->Send(to, self->machine_, self->last_answer_.get(),
                  [self] { self->Fail(ECONNREFUSED); });
  });
}

void Connection::Fail(int error) {
  if (is_closed_ || is_reset_) return;
  error_ = error;
  is_reset_ = true;
}

short Connection::Events() const {
  if (is_reset_) return POLLIN | POLLOUT | POLLERR | POLLHUP;
  if (!is_connected_) return 0;
  int events = 0;
  if (!input_.empty() || is_finished_) events |= POLLIN;
  if (is_finished_) events |= POLLRDHUP;
  if (is_finished_ && has_finished_) events |= POLLHUP;
  if (!has_finished_ && num_sent_ - num_acknowledged_ < kWindow) events |= POLLOUT;
  return static_cast<short>(events);
}

ssize_t Connection::Read(char* bytes, std::size_t size, bool peek) {
  if (!input_.empty()) {
    const std::size_t before = input_.size();
    const ssize_t count = TakeBytes(input_, bytes, size, peek);
    // The peer may send again once there is room.
    if (!peek && before >= kWindow / 2 && input_.size() < kWindow / 2) {
      Transmit([](Connection&) {});
    }
    return count;
  }
  if (is_reset_) return Fails(ECONNRESET);
  if (is_finished_) return 0;
  return Fails(is_connected_ ? EAGAIN : ENOTCONN);
}

bool Connection::peer_takes_bytes() const {
  const auto peer = other_.lock();
  return !peer || peer->input_.size() < kWindow;
}

ssize_t Connection::Write(const char* bytes, std::size_t size) {
  if (is_reset_ || has_finished_) return Fails(EPIPE);
  if (!is_connected_) return Fails(error_ != 0 ? error_ : EAGAIN);
  const std::size_t under_way = num_sent_ - num_acknowledged_;
  if (under_way >= kWindow || !peer_takes_bytes()) return Fails(EAGAIN);
  std::size_t count = std::min(size, kWindow - under_way);
  // The system may take a part.
  if (count > 1 && Kernel::Current().Draw(16) == 0) {
    count = 1 + static_cast<std::size_t>(Kernel::Current().Draw(static_cast<std::int64_t>(count)));
  }
  num_sent_ += count;
  Transmit([text = std::string(bytes, count)](Connection& peer) {
    if (peer.is_closed_) return peer.Reset();
    peer.input_.insert(peer.input_.end(), text.begin(), text.end());
    peer.Transmit([num_bytes = text.size()](Connection& sender) { sender.Acknowledge(num_bytes); });
  });
  return static_cast<ssize_t>(count);
}

void Connection::Acknowledge(std::uint64_t bytes) { num_acknowledged_ += bytes; }

/// Tells the other end that this one is gone.
void Connection::Reset() {
  Transmit([](Connection& peer) { peer.Fail(ECONNRESET); });
}

void Connection::KeepAlive() {
  if (is_closed_ || is_reset_) return;
  Transmit([](Connection& peer) {
    if (peer.is_closed_) peer.Reset();
  });
  Kernel::Current().After(kProbeTime, [weak = weak_from_this()] {
    if (const auto alive = weak.lock()) alive->KeepAlive();
  });
}

void Connection::FinishWriting() {
  if (std::exchange(has_finished_, true) || !is_connected_) return;
  Transmit([](Connection& peer) { peer.is_finished_ = true; });
}

void Connection::Close() {
  if (is_closed_) return;
  if (is_connected_ && !is_reset_) {
    if (input_.empty()) {
      FinishWriting();
    } else {
      Reset();
    }
  }
  is_closed_ = true;
  held_.reset();
}

void Listener::Arrive(const std::shared_ptr<Connection>& from) {
  if (from->is_closed_) return;
  const auto made = std::make_shared<Connection>(machine_, from->peer_);
  made->peer_ = from->local_;
  made->other_ = from;
  made->is_connected_ = true;
  made->last_arrival_ = from->last_answer_;
  made->last_answer_ = from->last_arrival_;
  from->other_ = made;
  from->held_ = made;  // packets that arrive before it is accepted belong to it
  waiting_.push_back(made);
  made->Transmit([](Connection& peer) {
    if (!peer.is_reset_) peer.is_connected_ = true;
  });
}

std::shared_ptr<Connection> Listener::Accept() {
  if (waiting_.empty()) return nullptr;
  auto connection = std::move(waiting_.front());
  waiting_.pop_front();
  return connection;
}

void Listener::Close() {
  network->listeners_.erase({machine_->number, PortOf(local_)});
  for (const auto& connection : std::exchange(waiting_, {})) {
    connection->Reset();
    connection->is_closed_ = true;
  }
}

// What is on one machine.

ssize_t EventCounter::Read(char* bytes, std::size_t size, bool) {
  if (size < sizeof count_) return Fails(EINVAL);
  if (count_ == 0) return Fails(EAGAIN);
  std::memcpy(bytes, &count_, sizeof count_);
  count_ = 0;
  return sizeof count_;
}

ssize_t EventCounter::Write(const char* bytes, std::size_t size) {
  std::uint64_t more = 0;
  if (size < sizeof more) return Fails(EINVAL);
  std::memcpy(&more, bytes, sizeof more);
  count_ += more;
  return sizeof more;
}

short PipeEnd::Events() const {
  if (!reads_) return static_cast<short>(pipe_->is_read ? POLLOUT : POLLERR);
  return static_cast<short>((pipe_->bytes.empty() ? 0 : POLLIN) |
                            (pipe_->is_written ? 0 : POLLHUP));
}

ssize_t PipeEnd::Read(char* bytes, std::size_t size, bool peek) {
  if (!pipe_->bytes.empty()) return TakeBytes(pipe_->bytes, bytes, size, peek);
  return pipe_->is_written ? Fails(EAGAIN) : 0;
}

ssize_t PipeEnd::Write(const char* bytes, std::size_t size) {
  if (!pipe_->is_read) return Fails(EPIPE);
  pipe_->bytes.insert(pipe_->bytes.end(), bytes, bytes + size);
  return static_cast<ssize_t>(size);
}

int DescriptorSet::Control(int operation, int descriptor, const epoll_event* event) {
  if (operation == EPOLL_CTL_DEL) {
    if (watched_.erase(descriptor) > 0) return 0;
    return static_cast<int>(Fails(ENOENT));
  }
  watched_[descriptor] = {network->Find(descriptor), *event};
  return 0;
}

int DescriptorSet::Ready(epoll_event* events, int most) const {
  int count = 0;
  for (const auto& [descriptor, watched] : watched_) {
    if (count == most) break;
    const auto endpoint = watched.first.lock();
    if (!endpoint) continue;
    // The events of epoll have the values of those of poll.
    const auto seen = static_cast<std::uint32_t>(static_cast<unsigned short>(endpoint->Events()));
    const std::uint32_t found = seen & (watched.second.events | EPOLLERR | EPOLLHUP);
    if (found == 0) continue;
    if (events != nullptr) {
      events[count] = watched.second;
      events[count].events = found;
    }
    ++count;
  }
  return count;
}

// The network.

Network::Network(Kernel& kernel) : kernel_(kernel) { network = this; }
Network& Network::Current() { return *network; }

void Network::Send(const Machine* from, const Machine* to, SimTime* last,
                   std::function<void()> arrive) {
  SimTime delay = from == to ? 1000 : least_delay + kernel_.Draw(most_delay - least_delay);
  if (from != to && kernel_.Draw(64) == 0) delay *= 20;
  *last = std::max(*last, kernel_.now() + delay);
  kernel_.At(*last, [this, from, to, arrive = std::move(arrive)]() mutable {
    const auto cut = cut_.find({from->number, to->number});
    if (cut != cut_.end()) return cut->second.push_back(std::move(arrive));
    arrive();
  });
}

void Network::Cut(const Machine* from, const Machine* to) {
  kernel_.Note("cut " + std::to_string(from->number) + " -> " + std::to_string(to->number));
  cut_[{from->number, to->number}];
}

void Network::Mend(const Machine* from, const Machine* to) {
  kernel_.Note("mend " + std::to_string(from->number) + " -> " + std::to_string(to->number));
  const auto cut = cut_.extract({from->number, to->number});
  if (cut.empty()) return;
  for (const auto& arrive : cut.mapped()) arrive();
}

void Network::Discard(const Machine* machine) {
  for (auto& [path, waiting] : cut_) {
    if (path.first == machine->number || path.second == machine->number) waiting.clear();
  }
}

Machine* Network::MachineAt(std::uint32_t address) {
  for (Machine* const machine : machines_) {
    if (machine->address == address) return machine;
  }
  return nullptr;
}

Listener* Network::ListenerAt(const Machine* machine, std::uint16_t port) {
  const auto found = listeners_.find({machine->number, port});
  return found == listeners_.end() ? nullptr : found->second;
}

sockaddr_in Network::AddressOf(const Machine* machine) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(machine->address);
  address.sin_port = htons(next_port_++);
  return address;
}

bool Network::Bind(const Machine* machine, sockaddr_in* address) {
  const std::uint32_t host = ntohl(address->sin_addr.s_addr);
  if (host != machine->address && host != INADDR_ANY && host != INADDR_LOOPBACK) {
    errno = EADDRNOTAVAIL;
    return false;
  }
  if (address->sin_port == 0) address->sin_port = htons(next_port_++);
  if (ListenerAt(machine, PortOf(*address)) == nullptr) return true;
  errno = EADDRINUSE;
  return false;
}

int Network::Open(const std::shared_ptr<Endpoint>& endpoint, const SimProcess* process) {
  // A real descriptor keeps the number free for this one.
  const int descriptor = static_cast<int>(RealSyscall(SYS_memfd_create, "simulated", 1, 0));
  if (descriptor < 0) throw std::runtime_error("no descriptor is left");
  entries_[descriptor] = {endpoint, process};
  ++endpoint->num_descriptors;
  return descriptor;
}

const SimProcess* Network::OwnerOf(int descriptor) const {
  const auto found = entries_.find(descriptor);
  return found == entries_.end() ? nullptr : found->second.process;
}

void Network::Replace(int descriptor, const std::shared_ptr<Endpoint>& endpoint) {
  Entry& entry = entries_.at(descriptor);
  endpoint->is_blocking = entry.endpoint->is_blocking;
  endpoint->num_descriptors = entry.endpoint->num_descriptors;
  entry.endpoint = endpoint;
  if (const auto listener = std::dynamic_pointer_cast<Listener>(endpoint)) {
    listeners_[{listener->machine()->number, PortOf(listener->local())}] = listener.get();
  }
}

std::shared_ptr<Endpoint> Network::Find(int descriptor) const {
  const auto found = entries_.find(descriptor);
  return found == entries_.end() ? nullptr : found->second.endpoint;
}

bool Network::Close(int descriptor) {
  const auto found = entries_.extract(descriptor);
  if (found.empty()) return false;
  const auto& endpoint = found.mapped().endpoint;
  if (--endpoint->num_descriptors <= 0) endpoint->Close();
  RealClose(descriptor);
  return true;
}

void Network::CloseAll(const SimProcess* process) {
  std::vector<int> open;
  for (const auto& [descriptor, entry] : entries_) {
    if (entry.process == process) open.push_back(descriptor);
  }
  for (const int descriptor : open) Close(descriptor);
}

}  // namespace troupe::testing
