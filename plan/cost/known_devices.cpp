#include "plan/cost/known_devices.hpp"

namespace troupe {
namespace {

// Shares of the specifications that large passes reach (bench/paper_tables, fitted on an H100).
constexpr double kLinearShare = 0.82;
constexpr double kAttentionShare = 0.355;
/// Linear layers and norms read and write about twice what they would have to.
constexpr double kTraffic = 2.0;
// Guesses: the start of a kernel, of a message inside a node, and of one between nodes.
constexpr double kOperationS = 3e-6;
constexpr double kInsideS = 5e-6;
constexpr double kBetweenS = 15e-6;
/// The optimizer reads four values of a parameter and writes three.
constexpr double kUpdateBytes = 28.0;

double PeakOf(const DeviceSpecification& device, const RunConfig& run) {
  switch (run.precision) {
    case Precision::kBFloat16:
      return device.bf16_tflops;
    case Precision::kFloat64:
      return device.fp64_tflops;
    case Precision::kFloat32:
      return run.tf32 ? device.tf32_tflops : device.fp32_tflops;
  }
  return 0.0;
}

}  // namespace

const std::vector<DeviceSpecification>& KnownDevices() {
  static const std::vector<DeviceSpecification> devices = {
      {.name = "a100-80g",
       .source = "NVIDIA A100 data sheet (SXM, 80 GB); DGX A100: NVLink 600 GB/s in both "
                 "directions, 200 Gb/s per GPU between nodes",
       .memory_gb = 80,
       .memory_gb_per_s = 2039,
       .bf16_tflops = 312,
       .tf32_tflops = 156,
       .fp32_tflops = 19.5,
       .fp64_tflops = 19.5,
       .inside_gb_per_s = 300,
       .between_gb_per_s = 25},
      {.name = "h100-80g",
       .source = "NVIDIA H100 data sheet (SXM); DGX H100: NVLink 900 GB/s in both directions, "
                 "400 Gb/s per GPU between nodes",
       .memory_gb = 80,
       .memory_gb_per_s = 3350,
       .bf16_tflops = 989,
       .tf32_tflops = 494,
       .fp32_tflops = 67,
       .fp64_tflops = 67,
       .inside_gb_per_s = 450,
       .between_gb_per_s = 50},
      {.name = "h200-141g",
       .source = "NVIDIA H200 data sheet (SXM); DGX H200: NVLink 900 GB/s in both directions, "
                 "400 Gb/s per GPU between nodes",
       .memory_gb = 141,
       .memory_gb_per_s = 4800,
       .bf16_tflops = 989,
       .tf32_tflops = 494,
       .fp32_tflops = 67,
       .fp64_tflops = 67,
       .inside_gb_per_s = 450,
       .between_gb_per_s = 50},
      {.name = "b200-180g",
       .source = "NVIDIA DGX B200 data sheet, an eighth of the system: NVLink 1.8 TB/s in both "
                 "directions, 400 Gb/s per GPU between nodes",
       .memory_gb = 180,
       .memory_gb_per_s = 8000,
       .bf16_tflops = 2250,
       .tf32_tflops = 1125,
       .fp32_tflops = 75,
       .fp64_tflops = 37,
       .inside_gb_per_s = 900,
       .between_gb_per_s = 50},
      {.name = "l40s-48g",
       .source = "NVIDIA L40S data sheet: PCIe 4.0 x16, 64 GB/s in both directions; 200 Gb/s per "
                 "GPU between nodes is assumed",
       .memory_gb = 48,
       .memory_gb_per_s = 864,
       .bf16_tflops = 362,
       .tf32_tflops = 183,
       .fp32_tflops = 91.6,
       .fp64_tflops = 1.4,
       .inside_gb_per_s = 32,
       .between_gb_per_s = 25},
  };
  return devices;
}

Topology With(const TopologyConfig& stated, Topology topology) {
  topology.devices_per_node =
      static_cast<int>(stated.devices_per_node.value_or(topology.devices_per_node));
  const auto put = [](const std::optional<double>& gb_per_s, const std::optional<double>& us,
                      LinkRate& link) {
    if (gb_per_s) link.bytes_per_s = *gb_per_s * 1e9;
    if (us) link.latency_s = *us * 1e-6;
  };
  put(stated.inside_gb_per_s, stated.inside_us, topology.inside);
  put(stated.between_gb_per_s, stated.between_us, topology.between);
  return topology;
}

DeviceModel DeviceModelOf(const DeviceSpecification& device, const RunConfig& run) {
  const double peak = PeakOf(device, run) * 1e12;
  const double byte_s = 1.0 / (device.memory_gb_per_s * 1e9);
  const double element = run.precision == Precision::kBFloat16  ? 2.0
                         : run.precision == Precision::kFloat64 ? 8.0
                                                                : 4.0;
  const OperationRates rates{.operation_s = kOperationS,
                             .linear_flop_s = 1.0 / (peak * kLinearShare),
                             .linear_element_s = kTraffic * element * byte_s,
                             .attention_flop_s = 1.0 / (peak * kAttentionShare),
                             .attention_score_s = 0.0,
                             .element_s = kTraffic * element * byte_s};
  return {.name = std::string(device.name),
          .source = std::string(device.source),
          .memory_bytes = device.memory_gb * 1e9,
          .peak_flops_per_s = peak,
          .rates = {.forward = rates, .backward = rates, .pass_s = 0.0},
          .module_rates = {},
          .update_parameter_s = kUpdateBytes * byte_s,
          .sum_byte_s = 0.0,
          .step_s = 0.0,
          .topology = {
              .devices_per_node = device.devices_per_node,
              .inside = {.latency_s = kInsideS, .bytes_per_s = device.inside_gb_per_s * 1e9},
              .between = {.latency_s = kBetweenS, .bytes_per_s = device.between_gb_per_s * 1e9},
              .rails = 1.0}};  // each device has an adapter, and those of a node send together
}

}  // namespace troupe
