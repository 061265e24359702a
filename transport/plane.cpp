#include "transport/plane.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

std::string DescribeTransports(const Plane& plane, const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> kinds;  // transport, peers
  for (ProcessId peer = 0; peer < plane.num_processes(); ++peer) {
    const std::string transport = plane.transport(peer);
    if (peer == plane.self() || transport.empty()) continue;
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const auto& it) { return it.first == transport; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {transport, ""});
    kind->second += (kind->second.empty() ? "" : ", ") + names[static_cast<std::size_t>(peer)];
  }
  if (kinds.size() == 1) return kinds.front().first;
  std::string text;
  for (const auto& [transport, peers] : kinds)
    text += (text.empty() ? "" : ", ") + transport + " (" + peers + ")";
  return text;
}

}  // namespace troupe
