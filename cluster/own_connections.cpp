#include "cluster/own_connections.hpp"

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

namespace troupe {
std::vector<OwnConnection> OwnConnections() {
  std::vector<OwnConnection> connections;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    const auto state = ReadTcpState(fd);
    if (!state || !state->established) continue;
    const auto local = LocalAddressOf(fd);
    const auto peer = PeerAddressOf(fd);
    // Without addresses it was closed concurrently.
    if (local && peer && local->host != peer->host) connections.push_back({*local, *peer, *state});
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
