// What a device and the links between devices can do, as the cost model sees them: measured by
// `troupe profile`, or from public specifications.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

namespace troupe {

/// The times of operations on one device. A linear layer of m rows, n outputs and k inputs takes
///   operation_s + 2 m n k * linear_flop_s + (m n + m k + n k) * linear_element_s
struct OperationRates {
  double operation_s = 0.0;        ///< to start an operation
  double linear_flop_s = 0.0;      ///< for each floating-point operation of linear layers
  double linear_element_s = 0.0;   ///< for each element that they read or write
  double attention_flop_s = 0.0;   ///< likewise, of attention
  double attention_score_s = 0.0;  ///< for each pair of positions and head
  double element_s = 0.0;          ///< for each element that norms and the like read or write
  friend bool operator==(const OperationRates&, const OperationRates&) = default;
};

/// The rates of forwards and of backwards.
struct PassRates {
  OperationRates forward;
  OperationRates backward;
  double pass_s = 0.0;  ///< for each pass, besides its operations: messages, buffers
  friend bool operator==(const PassRates&, const PassRates&) = default;
};

/// A message of n bytes takes latency_s + n / bytes_per_s.
struct LinkRate {
  double latency_s = 0.0;
  /// Of each device, in one direction.
  double bytes_per_s = std::numeric_limits<double>::infinity();
  double TimeOf(double bytes) const { return latency_s + bytes / bytes_per_s; }
  friend bool operator==(const LinkRate&, const LinkRate&) = default;
};

/// The links of a job's devices: numbered in the order of ranks, `devices_per_node` to a node.
struct Topology {
  int devices_per_node = 1;
  LinkRate inside;   ///< of a node
  LinkRate between;  ///< nodes
  /// A group with k ranks in each of several nodes sends k^rails times as fast between them as one with
  /// a rank in each: 0 through the adapter of one device, 1 through those of all k.
  double rails = 0.0;
  /// Returns the slowest link in a group of `ranks` whose neighbours are `stride` apart. Such groups
  /// follow each other from rank 0 on.
  LinkRate LinkOf(int ranks, int stride) const {
    // Groups that do not divide a node reach over its end.
    if (ranks == 1 || devices_per_node % (ranks * stride) == 0) return inside;
    if (rails == 0.0 || stride >= devices_per_node) return between;
    LinkRate together = between;
    const int sharing = devices_per_node / stride;
    together.bytes_per_s *= rails == 1.0 ? sharing : std::pow(sharing, rails);  // pow takes long
    together.bytes_per_s = std::min(together.bytes_per_s, inside.bytes_per_s);
    return together;
  }
  friend bool operator==(const Topology&, const Topology&) = default;
};

/// The shares of communication that computation does not hide, where the software runs both at once.
struct ExposedShares {
  double tensor = 1.0;   ///< of collectives along tp
  double context = 1.0;  ///< of the exchange along cp that a ring does not hide
  double gradients =
      1.0;  ///< of sums of gradients after the last backward, and gathers of parameters
  friend bool operator==(const ExposedShares&, const ExposedShares&) = default;
};

/// What a profile knows of a module.
struct ProfiledModule {
  PassRates rates;
  double largest_flops = 0.0;  ///< operations of the largest forward that was measured
  double median_error = 0.0;   ///< of the rates against the passes that they were fitted to
  double worst_error = 0.0;    ///< likewise; a share, as the others
  double spread = 0.0;         ///< of repetitions of one pass: half of their middle half, median
};

struct DeviceModel {
  std::string name;
  std::string source;             ///< of the numbers, for people
  double memory_bytes = 0.0;      ///< of a device
  double peak_flops_per_s = 0.0;  ///< by its data sheet, in the run's precision; 0: unknown
  PassRates rates;
  std::map<std::string, ProfiledModule> modules = {};  ///< those that were profiled
  double update_parameter_s = 0.0;  ///< of the optimizer, for each parameter of a rank
  double collective_s = 0.0;        ///< what a rank does for each step of a collective's ring
  double sum_byte_s = 0.0;          ///< to add up what a collective reduces, for each byte
  double message_s = 0.0;           ///< of a tensor from a stage to the next, besides its bytes
  double step_s = 0.0;              ///< of each step, besides passes and updates
  double host_bytes_per_s = 0.0;    ///< to or from host memory; 0: copies take no time
  Topology topology;
  ExposedShares exposed = {};

  const PassRates& RatesOf(const std::string& module) const {
    const auto found = modules.find(module);
    return found == modules.end() ? rates : found->second.rates;
  }
};

/// Returns a device on which only the operations of linear layers and attention take time, at that
/// speed: good for proportions, not for seconds.
inline DeviceModel DeviceOfFlops(double flops_per_s) {
  DeviceModel device;
  for (OperationRates* rates : {&device.rates.forward, &device.rates.backward}) {
    rates->linear_flop_s = 1.0 / flops_per_s;
    rates->attention_flop_s = 1.0 / flops_per_s;
  }
  return device;
}

}  // namespace troupe
