// Determines where process 0 listens, from the command line, the configuration and the variables
// that launchers set. Pure; resolves nothing. There is no default: a process that falls back on
// "localhost" would wait for itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/socket.hpp"
#include "cluster/variables.hpp"
#include "configs/config.hpp"

namespace troupe {

/// The port of process 0 if a source names only a host.
inline constexpr std::uint16_t kJoinPort = 7420;

struct JoinChoice {
  Address address;
  std::string source;  ///< "--join", "MASTER_ADDR:MASTER_PORT"
};

/// Determines the address of process 0 of a job of several processes. The first of these that is
/// set:
///   --join (`join_argument`)
///   TROUPE_JOIN and cluster.join, which must agree
///   MASTER_ADDR:MASTER_PORT
///   the first host of SLURM_STEP_NODELIST or SLURM_JOB_NODELIST, port 7420
///   nodes[0].address, port 7420
/// If torchrun's agent keeps its own store on MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE=True), port
/// 7420 replaces it. Throws LaunchError if none is set, if TROUPE_JOIN and cluster.join disagree,
/// or if the chosen source is incomplete or malformed.
JoinChoice ChooseJoin(const Variables& variables, const std::optional<std::string>& join_argument,
                      const ClusterConfig& cluster);

/// The first host of a Slurm host list: "n0" of "n[0-3,7],m1", "r0n02" of "r[0-1]n[02-10]". Throws
/// std::invalid_argument for a malformed list.
std::string FirstHost(std::string_view host_list);

}  // namespace troupe
