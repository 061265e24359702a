#include "configs/schema_keys.hpp"

namespace troupe {

static constexpr Range kDevices{1, kMaxRanks};
/// Times become whole nanoseconds or milliseconds: what is larger is a slip of the pen.
static constexpr Range kTime{.low = 0, .high = 1e6, .above_low = true};

static KeySpec Seconds(std::string_view name, Slot (*slot)(const Target&),
                       std::string_view meaning) {
  return {.table = "cluster",
          .name = name,
          .type = ValueType::kNumber,
          .range = kTime,
          .unit = "seconds",
          .meaning = meaning,
          .slot = slot};
}

static std::vector<KeySpec> DeviceKeys() {
  return {
      {.table = "cluster",
       .name = "backend",
       .type = ValueType::kWord,
       .words = {"cpu", "cuda"},
       .other_words = {{"gpu", "cuda"}, {"nvidia", "cuda"}, {"nccl", "cuda"}},
       .role = KeyRole::kRounding,
       .meaning = "What a rank is: a worker thread, or a GPU with one. \"cuda\" needs a build for "
                  "GPUs to train, and none to be checked.",
       .slot = [](const Target& t) -> Slot { return &t.config->cluster.backend; }},
      {.table = "cluster",
       .name = "ranks_per_gpu",
       .type = ValueType::kInteger,
       .range = kDevices,
       .unit = "ranks",
       .meaning = "With backend \"cuda\": ranks of a node, in their order, that share a GPU, the "
                  "node's first `ranks_per_gpu` the first.",
       .slot = [](const Target& t) -> Slot { return &t.config->cluster.ranks_per_gpu; }},
      {.table = "cluster",
       .name = "ranks",
       .type = ValueType::kInteger,
       .required = true,
       .range = kDevices,
       .unit = "devices",
       .meaning =
           "Devices in the job, numbered from 0. Every one must be in some module's `ranks`.",
       .slot = [](const Target& t) -> Slot { return &t.config->cluster.ranks; }},
      {.table = "cluster",
       .name = "nodes",
       .type = ValueType::kNodes,
       .meaning = "Machines of the job. A count divides the ranks evenly, in order, and calls them "
                  "n0, n1, ...; `[[cluster.nodes]]` names them one by one.",
       .slot = [](const Target& t) -> Slot { return &t.config->cluster.nodes; }},
      {.table = "cluster.nodes.*",
       .name = "name",
       .type = ValueType::kText,
       .meaning =
           "What messages call it: lower-case letters, digits, `.`, `_` and `-`. Without one "
           "it is n0, n1, ... by its position.",
       .slot = [](const Target& t) -> Slot { return &t.node->name; }},
      {.table = "cluster.nodes.*",
       .name = "address",
       .type = ValueType::kText,
       .meaning =
           "Name or IP address at which the other nodes reach it; \"\" = the launcher knows.",
       .slot = [](const Target& t) -> Slot { return &t.node->address; }},
      {.table = "cluster.nodes.*",
       .name = "devices",
       .type = ValueType::kInteger,
       .required = true,
       .range = kDevices,
       .unit = "devices",
       .meaning =
           "Ranks that live there, numbered through in the order of the nodes. Together they "
           "are `cluster.ranks`.",
       .slot = [](const Target& t) -> Slot { return &t.node->devices; }},
      {.table = "cluster",
       .name = "processes",
       .type = ValueType::kWord,
       .words = {"node", "device"},
       .meaning = "\"node\": one process for all ranks of a node; \"device\": one for each rank.",
       .slot = [](const Target& t) -> Slot { return &t.config->cluster.processes; }},
      {.table = "cluster",
       .name = "join",
       .type = ValueType::kText,
       .meaning = "HOST:PORT where process 0 listens for the others. `--join` wins; \"\" = found "
                  "from the launcher or the first node's address.",
       .slot = [](const Target& t) -> Slot { return &t.config->cluster.join; }},
  };
}

static std::vector<KeySpec> WatchKeys() {
  return {
      Seconds(
          "join_timeout_s",
          [](const Target& t) -> Slot { return &t.config->cluster.join_timeout_s; },
          "How long all processes may take to meet."),
      {.table = "cluster",
       .name = "heartbeat_ms",
       .type = ValueType::kNumber,
       .range = Range{.low = 1, .high = 1e6},
       .unit = "ms",
       .meaning = "Time between two signs of life of a process.",
       .slot = [](const Target& t) -> Slot { return &t.config->cluster.heartbeat_ms; }},
      Seconds(
          "suspect_after_s",
          [](const Target& t) -> Slot { return &t.config->cluster.suspect_after_s; },
          "Silence of a process after which it is named; more than two heartbeats."),
      Seconds(
          "dead_after_s", [](const Target& t) -> Slot { return &t.config->cluster.dead_after_s; },
          "Silence after which it counts as lost and the run ends; more than `suspect_after_s`."),
      Seconds(
          "stuck_after_s", [](const Target& t) -> Slot { return &t.config->cluster.stuck_after_s; },
          "Longest time that an actor may spend on one message."),
      Seconds(
          "pass_timeout_s",
          [](const Target& t) -> Slot { return &t.config->cluster.pass_timeout_s; },
          "Longest time of one pass on a device."),
      Seconds(
          "stall_after_s", [](const Target& t) -> Slot { return &t.config->cluster.stall_after_s; },
          "Time in which nothing moves anywhere, after which the run counts as stalled."),
  };
}

static std::vector<KeySpec> TlsKeys() {
  return {
      {.table = "cluster",
       .name = "tls",
       .type = ValueType::kWord,
       .words = {"auto", "on", "off: the network is trusted"},
       .meaning = "Whether connections between processes are encrypted. \"auto\": when the join "
                  "address is neither loopback nor private.",
       .slot = [](const Target& t) -> Slot { return &t.config->cluster.tls; }},
      {.table = "cluster",
       .name = "tls_ca",
       .type = ValueType::kPath,
       .meaning = "File (PEM) of the authority that signed the processes' certificates. All three "
                  "tls files or none.",
       .slot = [](const Target& t) -> Slot { return &t.config->cluster.tls_ca; }},
      {.table = "cluster",
       .name = "tls_certificate",
       .type = ValueType::kPath,
       .meaning = "File (PEM) of this process's certificate.",
       .slot = [](const Target& t) -> Slot { return &t.config->cluster.tls_certificate; }},
      {.table = "cluster",
       .name = "tls_key",
       .type = ValueType::kPath,
       .meaning = "File (PEM) of its private key.",
       .slot = [](const Target& t) -> Slot { return &t.config->cluster.tls_key; }},
  };
}

static std::vector<KeySpec> TransportKeys() {
  return {
      {.table = "transport",
       .name = "verify",
       .type = ValueType::kWord,
       .words = {"off", "header", "payload"},
       .meaning = "What is checked of every tensor that arrives: nothing, that it is the one that "
                  "was asked for, or every byte of it too, up to the memory of a GPU.",
       .slot = [](const Target& t) -> Slot { return &t.config->transport.verify; }},
      {.table = "transport",
       .name = "tcp",
       .type = ValueType::kWord,
       .words = {"auto", "proven", "ucx"},
       .meaning =
           "What carries tensors over TCP: connections that have proven the run key, or UCX, "
           "which listens on a port; \"auto\" = proven, unless ucx_tls names tcp.",
       .slot = [](const Target& t) -> Slot { return &t.config->transport.tcp; }},
      {.table = "transport",
       .name = "ucx_tls",
       .type = ValueType::kText,
       .meaning =
           "Transports that UCX may use, as in UCX_TLS; \"auto\" = shared memory where there is "
           "any, and TCP where tcp says so; \"none\" = UCX carries nothing.",
       .slot = [](const Target& t) -> Slot { return &t.config->transport.ucx_tls; }},
      {.table = "transport",
       .name = "net_devices",
       .type = ValueType::kText,
       .meaning = "Network interfaces, separated by commas; \"\" = the one of the node's address.",
       .slot = [](const Target& t) -> Slot { return &t.config->transport.net_devices; }},
      {.table = "transport",
       .name = "port_range",
       .type = ValueType::kText,
       .meaning = "Ports for UCX to listen on, such as \"7500-7600\"; \"\" = any.",
       .slot = [](const Target& t) -> Slot { return &t.config->transport.port_range; }},
      {.table = "transport",
       .name = "spin_us",
       .type = ValueType::kInteger,
       .range = {0, 1e6},
       .unit = "us",
       .meaning = "How long the transport polls before it sleeps; 0 = not at all.",
       .slot = [](const Target& t) -> Slot { return &t.config->transport.spin_us; }},
      {.table = "checkpoint",
       .name = "every",
       .type = ValueType::kInteger,
       .range = kCountOrNone,
       .unit = "steps",
       .meaning = "Steps between checkpoints; 0 = none by steps.",
       .slot = [](const Target& t) -> Slot { return &t.config->checkpoint.every; }},
      {.table = "checkpoint",
       .name = "every_minutes",
       .type = ValueType::kNumber,
       .range = {0, 1e6},
       .unit = "minutes",
       .meaning = "Time between checkpoints: the first step that ends this long after the newest "
                  "one writes another. 0 = off. `every` works at the same time; with both 0 a run "
                  "writes one only when it is interrupted.",
       .slot = [](const Target& t) -> Slot { return &t.config->checkpoint.every_minutes; }},
      {.table = "checkpoint",
       .name = "keep",
       .type = ValueType::kInteger,
       .range = kCount,
       .unit = "checkpoints",
       .meaning = "Newest ones that are kept.",
       .slot = [](const Target& t) -> Slot { return &t.config->checkpoint.keep; }},
  };
}

std::vector<KeySpec> ClusterKeys() {
  std::vector<KeySpec> keys;
  for (const auto part : {DeviceKeys, WatchKeys, TlsKeys, TransportKeys}) {
    for (auto& key : part()) {
      // Machines, what runs there and who watches it decide no number; what a rank is rounds them.
      if (key.role == KeyRole::kRun) key.role = KeyRole::kExecution;
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

}  // namespace troupe
