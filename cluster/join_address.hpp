// Where process 0 listens, from the command line, the configuration and the variables that
// launchers set. Pure; nothing is resolved. There is no default: a process that falls back on
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

/// The port of process 0 where a source names a host only.
inline constexpr std::uint16_t kJoinPort = 7420;

struct JoinChoice {
  Address address;
  std::string source;  ///< "--join", "MASTER_ADDR:MASTER_PORT"
};

/// Where process 0 of a job of several processes listens: the first of
///   --join (`join_argument`); TROUPE_JOIN and cluster.join, which must agree;
///   MASTER_ADDR:MASTER_PORT; the first host of SLURM_STEP_NODELIST or SLURM_JOB_NODELIST, and
///   nodes[0].address, both with port 7420.
/// Where torchrun's agent keeps its own store on MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE=True),
/// the port is 7420, too. Throws LaunchError when there is none, when TROUPE_JOIN and cluster.join
/// disagree, and when the source that counts is half set or malformed.
JoinChoice ChooseJoin(const Variables& variables, const std::optional<std::string>& join_argument,
                      const ClusterConfig& cluster);

/// The first host of a Slurm host list: "n0" of "n[0-3,7],m1", "r0n02" of "r[0-1]n[02-10]". Throws
/// std::invalid_argument for what is none.
std::string FirstHost(std::string_view host_list);

}  // namespace troupe
