#include "tests/faults/stranger.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <memory>
#include <netinet/in.h>
#include <poll.h>
#include <random>
#include <sched.h>
#include <set>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include "tests/cluster/connect.hpp"
#include "tests/faults/program.hpp"

namespace troupe::testing {
namespace {

/// Connections under way at a time.
constexpr int kAtOnce = 256;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

[[noreturn]] void Fail(const std::string& what, int error) {
  throw std::runtime_error(what + ": " + std::strerror(error));
}

/// Whether each of `ports` accepts a connection; all are tried at once.
std::vector<int> OpenAmong(const std::string& address, int first, int last) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  inet_pton(AF_INET, address.c_str(), &to.sin_addr);
  std::vector<std::unique_ptr<Descriptor>> sockets;
  std::vector<pollfd> polls;
  std::size_t left = 0;
  for (int port = first; port <= last; ++port) {
    sockets.push_back(std::make_unique<Descriptor>(
        socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
    const int fd = sockets.back()->get();
    if (fd < 0) Fail("no socket for a scan", errno);
    // Closed without a farewell, so that a scan does not use up the ports of its own host.
    const linger reset{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    const int result = connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    if (result != 0 && errno != EINPROGRESS && errno != ECONNREFUSED) Fail(address, errno);
    const bool refused = result != 0 && errno == ECONNREFUSED;
    polls.push_back({refused ? -1 : fd, POLLOUT, 0});
    left += refused ? 0 : 1;
  }
  std::vector<int> open;
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  while (left > 0) {
    if (Clock::now() > deadline) Fail(address + ": ports of a scan", ETIMEDOUT);
    poll(polls.data(), polls.size(), 100);
    for (std::size_t i = 0; i < polls.size(); ++i) {
      if (polls[i].fd < 0 || polls[i].revents == 0) continue;
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(polls[i].fd, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != ECONNREFUSED) open.push_back(first + static_cast<int>(i));
      polls[i].fd = -1;
      --left;
    }
  }
  return open;
}

/// "127.0.0.1:41234" or "[::]:80": what stands behind the last colon.
int PortOf(const std::string& address) { return std::stoi(address.substr(address.rfind(':') + 1)); }

/// The ports in the output of `ss`, of lines that contain `part`.
std::vector<int> PortsIn(const std::string& output, const std::string& part) {
  std::istringstream stream(output);
  std::set<int> ports;
  for (std::string line; std::getline(stream, line);) {
    if (line.find(part) == std::string::npos) continue;
    std::istringstream words(line);
    std::string state, received, sent, local;
    if (words >> state >> received >> sent >> local) ports.insert(PortOf(local));
  }
  return {ports.begin(), ports.end()};
}

}  // namespace

void OnHost(const std::string& name, const std::function<void()>& action) {
  std::exception_ptr failure;
  std::thread thread([&] {
    try {
      const std::string path = "/var/run/netns/" + name;
      const Descriptor space(open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (space.get() < 0 || setns(space.get(), CLONE_NEWNET) != 0) Fail(path, errno);
      action();
    } catch (...) {
      failure = std::current_exception();
    }
  });
  thread.join();
  if (failure) std::rethrow_exception(failure);
}

std::vector<int> OpenPorts(const std::string& from, const std::string& address) {
  std::vector<int> open;
  OnHost(from, [&] {
    for (int first = 1; first <= 65535; first += kAtOnce) {
      const auto some = OpenAmong(address, first, std::min(first + kAtOnce - 1, 65535));
      open.insert(open.end(), some.begin(), some.end());
    }
  });
  return open;
}

std::vector<int> ListeningPorts(const std::string& name) {
  return PortsIn(Shell("ss -Htln -N " + name), "LISTEN");
}

std::vector<int> ListeningPorts(pid_t process) {
  return PortsIn(Shell("ss -Htlnp"), "pid=" + std::to_string(process) + ",");
}

std::vector<std::string> DatagramSockets(const std::vector<pid_t>& processes) {
  std::istringstream stream(Shell("ss -Hxap"));
  std::vector<std::string> names;
  for (std::string line; std::getline(stream, line);) {
    const auto has = [&](pid_t pid) {
      return line.find("pid=" + std::to_string(pid) + ",") != std::string::npos;
    };
    std::istringstream words(line);
    std::string kind, state, received, sent, local;
    words >> kind >> state >> received >> sent >> local;
    if (kind == "u_dgr" && local.starts_with("@") && std::ranges::any_of(processes, has))
      names.push_back(local.substr(1));
  }
  return names;
}

void SendDatagrams(const std::string& name, const std::vector<std::byte>& bytes, int times) {
  const Descriptor sender(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path + 1, name.data(), std::min(name.size(), sizeof to.sun_path - 1));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  for (int i = 0; i < times; ++i) {
    const auto* const any = reinterpret_cast<const sockaddr*>(&to);
    if (sendto(sender.get(), bytes.data(), bytes.size(), MSG_DONTWAIT, any, size) < 0 &&
        errno != EAGAIN)
      Fail("@" + name, errno);
  }
}

std::vector<std::byte> BytesThatAbortUcx() {
  std::vector<std::byte> bytes(133, std::byte{0x41});
  const std::uint64_t magic = 0xCAFEBABE12345678;
  const std::uint32_t size = 20;
  std::memcpy(bytes.data(), &magic, sizeof magic);
  bytes[sizeof magic] = std::byte{0};
  std::memcpy(bytes.data() + sizeof magic + 1, &size, sizeof size);
  return bytes;
}

std::vector<std::byte> RandomBytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

void Visit(const Address& address, Deadline until, const std::function<void(Socket&)>& behave) {
  try {
    Socket socket = Connect(address, until);
    behave(socket);
    std::array<std::byte, 256> ignored{};
    while (Clock::now() < until) {
      if (socket.TryRead(ignored) == std::size_t{0}) return;
      pollfd entry{socket.fd(), POLLIN, 0};
      poll(&entry, 1, 20);
    }
  } catch (const SocketError&) {
    // Refused or reset: it has been dealt with.
  }
}

}  // namespace troupe::testing
