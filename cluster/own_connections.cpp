#include "cluster/own_connections.hpp"

#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

namespace troupe {
namespace {

std::optional<int> NumberOf(const std::string& name) {
  int fd = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), fd);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return fd;
}

/// A view of a descriptor: never closes it.
struct Borrowed {
  explicit Borrowed(int fd) : socket(fd) {}
  ~Borrowed() { socket.Release(); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Socket socket;
};

}  // namespace

std::vector<OwnConnection> OwnConnections() {
  std::vector<OwnConnection> connections;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    const auto fd = NumberOf(entry->path().filename());
    if (!fd) continue;
    const auto state = ReadTcpState(*fd);
    if (!state || !state->established) continue;
    try {
      const Borrowed borrowed(*fd);
      OwnConnection connection{borrowed.socket.local_address(), borrowed.socket.peer_address(),
                               *state};
      if (connection.local.host != connection.peer.host)
        connections.push_back(std::move(connection));
    } catch (const SocketError&) {
      // Closed concurrently.
    }
  }
  return connections;
}

std::vector<PathProgress::Stuck> PathProgress::Look(const std::vector<OwnConnection>& connections,
                                                    Time now, std::chrono::nanoseconds limit) {
  std::map<Ends, TcpProgress> followed;
  std::vector<Stuck> stuck;
  for (const OwnConnection& connection : connections) {
    const Ends ends{ToString(connection.local), ToString(connection.peer)};
    const auto known = progress_.find(ends);
    TcpProgress progress = known == progress_.end() ? TcpProgress(now) : known->second;
    progress.Observe(connection.state, now);
    if (progress.stuck(now) >= limit)
      stuck.push_back({connection.local, connection.peer, connection.state.segment_bytes});
    followed.insert_or_assign(ends, progress);
  }
  progress_ = std::move(followed);
  return stuck;
}

}  // namespace troupe
