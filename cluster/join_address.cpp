#include "cluster/join_address.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe {

std::string FirstHost(std::string_view host_list) {
  const auto refuse = [&](const std::string& problem) -> std::string {
    throw std::invalid_argument("expected a list of hosts like \"n[0-3,7],m1\", got \"" +
                                std::string(host_list) + "\"" + problem);
  };
  std::string host;
  std::string_view rest = host_list;
  while (!rest.empty() && rest.front() != ',') {
    if (rest.front() != '[') {
      const char c = rest.front();
      if (c == ']' || c == ' ' || c == ':' || c == '/') return refuse("");
      host += c;
      rest.remove_prefix(1);
      continue;
    }
    const auto close = rest.find(']');
    if (close == std::string_view::npos) return refuse(", which has no ]");
    const std::string_view ranges = rest.substr(1, close - 1);
    const std::string_view number = ranges.substr(0, ranges.find_first_of(",-"));
    const bool digits = std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
    if (number.empty() || !digits) return refuse(", which has no number after [");
    host += number;
    rest.remove_prefix(close + 1);
  }
  return host.empty() ? refuse("") : host;
}

static JoinChoice AtJoinPort(std::string host, std::string source) {
  return {{std::move(host), kJoinPort}, std::move(source)};
}

/// Parses an address to connect to, which needs a port.
static JoinChoice Parsed(const std::string& source, const std::string& text) {
  try {
    Address address = ParseAddress(text);
    if (address.port == 0) throw LaunchError(source + ": expected a port from 1 on, got " + text);
    return {std::move(address), source};
  } catch (const std::invalid_argument& error) {
    throw LaunchError(source + ": " + error.what());
  }
}

/// From TROUPE_JOIN and cluster.join. Neither takes precedence, so they must agree.
static std::optional<JoinChoice> FromVariableOrKey(const Variables& variables,
                                                   const ClusterConfig& cluster) {
  const auto* text = FindVariable(variables, "TROUPE_JOIN");
  if (text == nullptr && cluster.join.empty()) return {};
  if (text == nullptr) return Parsed("cluster.join", cluster.join);
  JoinChoice variable = Parsed("TROUPE_JOIN", *text);
  if (cluster.join.empty()) return variable;
  const JoinChoice key = Parsed("cluster.join", cluster.join);
  if (variable.address == key.address) return variable;
  throw LaunchError("TROUPE_JOIN says " + ToString(variable.address) + ", cluster.join says " +
                    ToString(key.address) + "; expected the same, or --join, which wins");
}

static std::optional<JoinChoice> FromTorch(const Variables& variables) {
  const auto* host = FindVariable(variables, "MASTER_ADDR");
  const auto* port = FindVariable(variables, "MASTER_PORT");
  if (host == nullptr && port == nullptr) return {};
  if (host == nullptr) throw HalfSet("MASTER_PORT", *port, "MASTER_ADDR");
  const auto* agent_store = FindVariable(variables, "TORCHELASTIC_USE_AGENT_STORE");
  if (agent_store != nullptr && *agent_store == "True") return AtJoinPort(*host, "MASTER_ADDR");
  if (port == nullptr) throw HalfSet("MASTER_ADDR", *host, "MASTER_PORT");
  const bool bare_ipv6 = host->find(':') != std::string::npos && host->front() != '[';
  return Parsed("MASTER_ADDR:MASTER_PORT", (bare_ipv6 ? "[" + *host + "]" : *host) + ":" + *port);
}

static std::optional<JoinChoice> FromSlurm(const Variables& variables) {
  for (const std::string name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    const auto* list = FindVariable(variables, name);
    if (list == nullptr) continue;
    std::string host;
    try {
      host = FirstHost(*list);
    } catch (const std::invalid_argument& error) {
      throw LaunchError(name + ": " + error.what());
    }
    return AtJoinPort(std::move(host), name);
  }
  return {};
}

JoinChoice ChooseJoin(const Variables& variables, const std::optional<std::string>& join_argument,
                      const ClusterConfig& cluster) {
  if (join_argument) return Parsed("--join", *join_argument);
  if (auto address = FromVariableOrKey(variables, cluster)) return *address;
  if (auto torch = FromTorch(variables)) return *torch;
  if (auto slurm = FromSlurm(variables)) return *slurm;
  if (!cluster.nodes.empty() && !cluster.nodes.front().address.empty()) {
    return AtJoinPort(cluster.nodes.front().address, "cluster.nodes");
  }
  throw LaunchError(
      "the address of process 0 is not given; expected --join HOST:PORT, TROUPE_JOIN, "
      "cluster.join, MASTER_ADDR and MASTER_PORT, SLURM_STEP_NODELIST, SLURM_JOB_NODELIST or the "
      "address of the first of cluster.nodes");
}

}  // namespace troupe
