#include "configs/schema_keys.hpp"

namespace troupe {

static constexpr Range kDevices{1, kMaxRanks};
/// Times are stored as whole nanoseconds or milliseconds. A larger value is a typing error.
static constexpr Range kAnyTime{.low = 0, .high = 1e6, .above_low = true};

static constexpr Range kAnyRate{.low = 1e-3, .high = 1e6};
static constexpr Range kAnyDelay{.low = 0, .high = 1e6};

// These keys do not change numbers, except the backend, which changes their rounding.
std::vector<KeySpec> ClusterKeys() {  // NOLINT(readability-function-size): a table
  using enum ValueType;
  using enum KeyRole;
  std::vector<KeySpec> keys;
  Add(keys, {.table = "cluster", .role = kExecution},
      {{"backend", &ClusterConfig::backend, kBackendWords,
        Others{"cuda", {"gpu", "nvidia", "nccl"}}, kRounding,
        "What a rank is: a worker thread, or a GPU with one. \"cuda\" needs a build for GPUs to "
        "train, and none to be checked."},
       {"ranks_per_gpu", &ClusterConfig::ranks_per_gpu, kDevices, Unit{"ranks"},
        "With backend \"cuda\": ranks of a node, in their order, that share a GPU, the node's "
        "first `ranks_per_gpu` the first."},
       {"peak_tflops", &ClusterConfig::peak_tflops, kPositive, Unit{"TFLOP/s"},
        "What a GPU, or with backend \"cpu\" a rank, can compute at most in the run's precision, "
        "from its data sheet. Without it, no utilisation (MFU) is logged."},
       {"ranks", &ClusterConfig::ranks, kRequired, kDevices, Unit{"devices"},
        "Devices in the job, numbered from 0. Every one must be in some module's `ranks`."},
       {"nodes", &ClusterConfig::nodes, kNodes,
        "Machines of the job. A count divides the ranks evenly, in order, and calls them n0, n1, "
        "...; `[[cluster.nodes]]` names them one by one."},
       {"processes", &ClusterConfig::processes, Words{"node", "device"},
        "\"node\": one process for all ranks of a node; \"device\": one for each rank."},
       {"join", &ClusterConfig::join,
        "HOST:PORT where process 0 listens for the others. `--join` wins; \"\" = found from the "
        "launcher or the first node's address."},
       {"join_timeout_s", &ClusterConfig::join_timeout_s, kAnyTime, Unit{"seconds"},
        "How long all processes may take to meet."},
       {"wait_for_spare_s", &ClusterConfig::wait_for_spare_s, kAnyTime, Unit{"seconds"},
        "How long the others wait for a process in a lost one's place, if the job goes on "
        "(`--restarts`); at least three times as long as their own start took."},
       {"elastic", &ClusterConfig::elastic,
        "If no process takes a lost one's place within `wait_for_spare_s`, the job goes on with "
        "smaller `dp`, and with larger ones again when processes come (`--restarts`)."},
       {"slow_factor", &ClusterConfig::slow_factor, Range{.low = 0, .high = 1e6},
        "A rank is named as slow if its own work in a step takes more than this many times as long "
        "as usual; 0 = never, else at least 1."},
       {"slow_steps", &ClusterConfig::slow_steps, Range{.low = 1, .high = 1e6}, Unit{"steps"},
        "A rank is named after this many slow steps in a row; as many first steps show what is "
        "usual "
        "for it."},
       {"replace_slow", &ClusterConfig::replace_slow,
        "A spare, if one waits, takes the place of the process that has a slow rank "
        "(`--restarts`)."},
       {"heartbeat_ms", &ClusterConfig::heartbeat_ms, Range{.low = 1, .high = 1e6}, Unit{"ms"},
        "Time between two signs of life of a process."},
       {"suspect_after_s", &ClusterConfig::suspect_after_s, kAnyTime, Unit{"seconds"},
        "Silence of a process after which it is named; more than two heartbeats."},
       {"dead_after_s", &ClusterConfig::dead_after_s, kAnyTime, Unit{"seconds"},
        "Silence after which it counts as lost; more than `suspect_after_s`."},
       {"stuck_after_s", &ClusterConfig::stuck_after_s, kAnyTime, Unit{"seconds"},
        "Longest time that an actor may spend on one message."},
       {"pass_timeout_s", &ClusterConfig::pass_timeout_s, kAnyTime, Unit{"seconds"},
        "Longest time of one pass on a device."},
       {"stall_after_s", &ClusterConfig::stall_after_s, kAnyTime, Unit{"seconds"},
        "Time in which nothing moves anywhere, after which the run counts as stalled."},
       {"tls", &ClusterConfig::tls, Words{"auto", "on", "off: the network is trusted"},
        "Whether connections between processes are encrypted. \"auto\": when the join address is "
        "neither loopback nor private."},
       {"tls_ca", &ClusterConfig::tls_ca, kPath,
        "File (PEM) of the authority that signed the processes' certificates. All three tls files "
        "or none."},
       {"tls_certificate", &ClusterConfig::tls_certificate, kPath,
        "File (PEM) of this process's certificate."},
       {"tls_key", &ClusterConfig::tls_key, kPath, "File (PEM) of its private key."}});
  Add(keys, {.table = "cluster.nodes.*", .role = kExecution},
      {{"name", &ClusterNode::name,
        "What messages call it: lower-case letters, digits, `.`, `_` and `-`. Without one it is "
        "n0, n1, ... by its position."},
       {"address", &ClusterNode::address,
        "Name or IP address at which the other nodes reach it; \"\" = the launcher knows."},
       {"devices", &ClusterNode::devices, kRequired, kDevices, Unit{"devices"},
        "Ranks that live there, numbered through in the order of the nodes. Together they are "
        "`cluster.ranks`."}});
  Add(keys, {.table = "cluster.topology", .role = kExecution},
      {{"devices_per_node", &TopologyConfig::devices_per_node, kDevices, Unit{"devices"},
        "Devices of a machine."},
       {"inside_gb_per_s", &TopologyConfig::inside_gb_per_s, kAnyRate, Unit{"GB/s"},
        "What a device sends to others of its machine, in one direction."},
       {"between_gb_per_s", &TopologyConfig::between_gb_per_s, kAnyRate, Unit{"GB/s"},
        "What it sends to other machines."},
       {"inside_us", &TopologyConfig::inside_us, kAnyDelay, Unit{"us"},
        "How long the first byte takes inside a machine."},
       {"between_us", &TopologyConfig::between_us, kAnyDelay, Unit{"us"},
        "How long it takes between machines."}});
  Add(keys, {.table = "transport", .role = kExecution},
      {{"verify", &TransportConfig::verify, Words{"off", "header", "payload"},
        "What is checked of every tensor that arrives: nothing, that it is the one that was asked "
        "for, or every byte of it too, up to the memory of a GPU."},
       {"tcp", &TransportConfig::tcp, Words{"auto", "proven", "ucx"},
        "What carries tensors over TCP: connections that have proven the run key, or UCX, which "
        "listens on a port; \"auto\" = proven, unless ucx_tls names tcp."},
       {"ucx_tls", &TransportConfig::ucx_tls,
        "Transports that UCX may use, as in UCX_TLS; \"auto\" = shared memory where there is any, "
        "and TCP where tcp says so; \"none\" = UCX carries nothing."},
       {"net_devices", &TransportConfig::net_devices,
        "Network interfaces, separated by commas; \"\" = the one of the node's address."},
       {"port_range", &TransportConfig::port_range,
        "Ports for UCX to listen on, such as \"7500-7600\"; \"\" = any."},
       {"spin_us", &TransportConfig::spin_us, Range{0, 1e6}, Unit{"us"},
        "How long the transport polls before it sleeps; 0 = not at all."}});
  Add(keys, {.table = "checkpoint", .role = kExecution},
      {{"every", &CheckpointConfig::every, kCountOrNone, Unit{"steps"},
        "Steps between checkpoints; 0 = none by steps."},
       {"every_minutes", &CheckpointConfig::every_minutes, Range{0, 1e6}, Unit{"minutes"},
        "Time between checkpoints: the first step this long after the newest one has another. "
        "0 = off. `every` works at the same time; with both 0 a run writes one only when "
        "it is interrupted."},
       {"keep", &CheckpointConfig::keep, kCount, Unit{"checkpoints"}, "Newest ones that are kept."},
       {"keep_every", &CheckpointConfig::keep_every, kCountOrNone, kAddedLater, Unit{"steps"},
        "Checkpoints of steps that it divides are kept, too; 0 = none."},
       {"async", &CheckpointConfig::async, kAddedLater,
        "Checkpoints are written while training goes on, from a copy of the state in host memory. "
        "false = training waits until they are written, and nothing is copied."},
       {"replicas", &CheckpointConfig::replicas, kCountOrNone, kAddedLater, Unit{"processes"},
        "How many other processes hold the state of each in memory, on other nodes first. With "
        "--restarts a job that loses a process goes on from there: at most `mirror_every` "
        "complete steps are repeated. 0 = it goes on from the newest checkpoint on disk."},
       {"mirror_every", &CheckpointConfig::mirror_every, kCount, kAddedLater, Unit{"steps"},
        "Steps between two such states. No update begins while an earlier state is not held "
        "yet."}});
  return keys;
}

}  // namespace troupe
