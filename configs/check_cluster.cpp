#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>

#include "configs/checks.hpp"
#include "configs/toml_value.hpp"
#include "layout/text.hpp"

namespace troupe {

/// Returns 0 if `text` is not a port.
static int PortOf(std::string_view text) {
  const bool digits = text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!digits || text.empty() || text.size() > 5) return 0;
  const int port = std::stoi(std::string(text));
  return port <= 65'535 ? port : 0;
}

/// Returns whether `host` has only legal letters for a name or address. It is resolved when it is
/// used.
static bool IsHost(std::string_view host) {
  // One colon precedes a port; an IPv6 address has at least two.
  return !host.empty() && IsMadeOfLetters(host, "._-:%") && std::ranges::count(host, ':') != 1;
}

/// Accepts HOST:PORT, with an IPv6 address in brackets.
static bool IsHostAndPort(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || PortOf(text.substr(colon + 1)) == 0) return false;
  std::string_view host = text.substr(0, colon);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  return IsHost(host) && brackets == (host.find(':') != std::string_view::npos);
}

static void CheckNodes(const std::vector<ClusterNode>& nodes, Report& report) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    report.Expect(
        nodes[i].address.empty() || IsHost(nodes[i].address),
        {NodeKey(nodes[i].name, i, "address")},
        "expected a name or an IP address without a port, got " + Quoted(nodes[i].address));
    const std::string key = NodeKey(nodes[i].name, i, "name");
    if (!report.Good({key})) continue;
    if (!IsNodeName(nodes[i].name)) {
      report.Add(key,
                 "expected lower-case letters, digits, ., _ and -, a letter or digit first, "
                 "got " +
                     Quoted(nodes[i].name));
    } else if (!seen.insert(nodes[i].name).second) {
      report.Add(key, "two nodes are called " + Quoted(nodes[i].name) +
                          ", expected a different name for each");
    }
  }
}

/// Returns "4 + 3 = 7", shortened for many nodes.
static std::string SumText(const std::vector<ClusterNode>& nodes, std::int64_t sum) {
  static constexpr std::size_t kShown = 8;
  if (nodes.size() <= 1) return std::to_string(sum);
  const auto devices = [](const ClusterNode& node) { return std::to_string(node.devices); };
  return Listed(std::span(nodes).first(std::min(nodes.size(), kShown)), " + ", devices) +
         (nodes.size() > kShown ? " + ..." : "") + " = " + std::to_string(sum);
}

static void CheckDevices(const ClusterConfig& cluster, Report& report) {
  const std::string nodes_key = "cluster.nodes";
  const std::string ranks_key = "cluster.ranks";
  const auto& nodes = cluster.nodes;
  if (!report.Good({nodes_key, ranks_key}) || !report.Knows(ranks_key)) return;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!report.Good({NodeKey(nodes[i].name, i, "devices")})) return;
  }
  std::int64_t sum = 0;
  for (const ClusterNode& node : nodes) sum += node.devices;
  if (sum == 0) {  // the count does not divide the ranks
    return ExpectMultiple({ranks_key, cluster.ranks}, {nodes_key, std::ssize(nodes)}, report);
  }
  if (sum == cluster.ranks) return;
  const std::string devices = SumText(nodes, sum) + " devices";
  const std::string ranks = std::to_string(cluster.ranks);
  report.AddAtLater({nodes_key, "gives " + devices + ", expected cluster.ranks = " + ranks},
                    {ranks_key, "expected the " + devices + " of cluster.nodes, got " + ranks});
}

static void CheckSharing(const ClusterConfig& cluster, Report& report) {
  const std::string key = "cluster.ranks_per_gpu";
  if (cluster.ranks_per_gpu == 1 || !report.Good({key, "cluster.backend"})) return;
  int most = 0;
  for (const ClusterNode& node : cluster.nodes) most = std::max(most, node.devices);
  if (cluster.backend == Backend::kCuda) {
    if (most == 0 || cluster.ranks_per_gpu <= most) return;
    return report.Add(key, "expected at most the ranks of a node, " + std::to_string(most) +
                               ", got " + std::to_string(cluster.ranks_per_gpu));
  }
  report.Add(key, "expected 1 with cluster.backend = " + Quoted(ToString(cluster.backend)) +
                      ", whose ranks are threads, got " + std::to_string(cluster.ranks_per_gpu));
}

/// A peer is suspected after more than two heartbeats, and dead after longer than that.
static void CheckSilence(const ClusterConfig& cluster, Report& report) {
  const std::string heartbeat = "cluster.heartbeat_ms";
  const std::string suspect = "cluster.suspect_after_s";
  const std::string dead = "cluster.dead_after_s";
  const std::string heartbeat_ms = NumberText(cluster.heartbeat_ms);
  const std::string suspect_s = NumberText(cluster.suspect_after_s);
  const std::string dead_s = NumberText(cluster.dead_after_s);
  const double least_s = 2.0 * cluster.heartbeat_ms / 1000.0;
  if (report.Good({heartbeat, suspect}) && cluster.suspect_after_s <= least_s) {
    report.AddAtLater(
        {suspect, "expected more than two heartbeats = " + NumberText(least_s) +
                      " s (cluster.heartbeat_ms = " + heartbeat_ms + "), got " + suspect_s},
        {heartbeat, "expected less than half of cluster.suspect_after_s = " + suspect_s +
                        " s, got " + heartbeat_ms});
  }
  if (report.Good({suspect, dead}) && cluster.dead_after_s <= cluster.suspect_after_s) {
    report.AddAtLater(
        {dead, "expected more than " + suspect + " = " + suspect_s + ", got " + dead_s},
        {suspect, "expected less than " + dead + " = " + dead_s + ", got " + suspect_s});
  }
}

static void CheckSlow(const Config& config, Report& report) {
  const ClusterConfig& cluster = config.cluster;
  report.Expect(cluster.slow_factor == 0.0 || cluster.slow_factor >= 1.0, {"cluster.slow_factor"},
                "expected 0 or at least 1, got " + NumberText(cluster.slow_factor));
  report.Expect(!cluster.replace_slow || config.checkpoint.replicas > 0,
                {"cluster.replace_slow", "checkpoint.replicas"},
                "needs checkpoint.replicas = 1 or more, from which the spare gets its state");
}

static void CheckTls(const ClusterConfig& cluster, Report& report) {
  const std::pair<std::string, std::string> files[] = {
      {"cluster.tls_ca", cluster.tls_ca},
      {"cluster.tls_certificate", cluster.tls_certificate},
      {"cluster.tls_key", cluster.tls_key}};
  const auto given = std::ranges::find_if(files, [](const auto& f) { return !f.second.empty(); });
  if (given == std::end(files)) return;
  for (const auto& [key, path] : files) {
    if (!path.empty() || !report.Good({key})) continue;
    report.Add(given->first, "names a file, expected " + key + " to name one too, got \"\"");
  }
}

static void CheckTransport(const TransportConfig& transport, Report& report) {
  report.Expect(!transport.ucx_tls.empty(), {"transport.ucx_tls"},
                "expected \"auto\" or a list of UCX transports, got \"\"");
  report.Expect(transport.tcp != TransportTcp::kProven || !NamesTcp(transport.ucx_tls),
                {"transport.tcp", "transport.ucx_tls"},
                "\"proven\" keeps tensors off UCX's TCP, which transport.ucx_tls " +
                    Quoted(transport.ucx_tls) + " names: leave one of them out");
  report.Expect(transport.tcp != TransportTcp::kUcx || transport.ucx_tls != "none",
                {"transport.tcp", "transport.ucx_tls"},
                "\"ucx\" needs UCX, which transport.ucx_tls \"none\" leaves out");
  const std::string_view range = transport.port_range;
  if (range.empty()) return;
  const auto dash = std::min(range.find('-'), range.size());
  const int low = PortOf(range.substr(0, dash));
  const int high = dash == range.size() ? 0 : PortOf(range.substr(dash + 1));
  report.Expect(
      low >= 1 && low <= high, {"transport.port_range"},
      "expected LOW-HIGH, such as \"7500-7600\", with ports from 1 to 65535, got " + Quoted(range));
}

static void ExpectAddress(const std::string& key, const std::string& text, Report& report) {
  report.Expect(
      text.empty() || IsHostAndPort(text), {key},
      "expected HOST:PORT, such as \"n0:7420\" or \"[fd00::1]:7420\", got " + Quoted(text));
}

void CheckCluster(const Config& config, Report& report) {
  const ClusterConfig& cluster = config.cluster;
  CheckNodes(cluster.nodes, report);
  CheckDevices(cluster, report);
  CheckSharing(cluster, report);
  CheckSilence(cluster, report);
  CheckSlow(config, report);
  CheckTls(cluster, report);
  ExpectAddress("cluster.join", cluster.join, report);
  ExpectAddress("data.feed_address", config.data.feed_address, report);
  CheckTransport(config.transport, report);
}

}  // namespace troupe
