// Rates fitted to times that a known device would have taken.
#include "plan/cost/fit.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

#include "plan/cost/device_file.hpp"
#include "plan/cost/rank_cost.hpp"

namespace troupe {
namespace {

double ForwardOf(const DeviceModel& device, std::int64_t rows, std::int64_t width) {
  RankCost rank(device, device.rates, {});
  rank.AddLinear({.rows = rows, .out = 3 * width, .in = width});
  rank.AddElements(NormWork(rows, width));
  return rank.cost().forward.total();
}

const std::vector<SetRate>& Rates() {
  static const std::vector<SetRate> rates = {
      [](DeviceModel& device, double rate) { device.rates.forward.operation_s = rate; },
      [](DeviceModel& device, double rate) { device.rates.forward.linear_flop_s = rate; },
      [](DeviceModel& device, double rate) { device.rates.forward.linear_element_s = rate; },
      [](DeviceModel& device, double rate) { device.rates.forward.element_s = rate; }};
  return rates;
}

DeviceModel Truth() {
  DeviceModel device;
  device.rates.forward = {
      .operation_s = 3e-6, .linear_flop_s = 2e-11, .linear_element_s = 0.0, .element_s = 7e-10};
  return device;
}

/// Times of the device over several shapes, each changed by a share that alternates.
std::vector<Observation> Observed(double noise) {
  const DeviceModel truth = Truth();
  std::vector<Observation> observations;
  double share = 1.0 + noise;
  for (const std::int64_t rows : {16, 64, 256, 1024, 4096}) {
    for (const std::int64_t width : {32, 96, 512}) {
      observations.push_back(
          {[=](const DeviceModel& device) { return ForwardOf(device, rows, width); },
           share * ForwardOf(truth, rows, width)});
      share = 2.0 - share;
    }
  }
  return observations;
}

}  // namespace

TEST_CASE("rates that made the times are found again, a rate of 0 too", "[plan]") {
  DeviceModel fitted;
  FitRates(Observed(0.0), Rates(), fitted);
  const OperationRates& found = fitted.rates.forward;
  const OperationRates truth = Truth().rates.forward;
  CHECK(found.operation_s == Approx(truth.operation_s).epsilon(1e-6));
  CHECK(found.linear_flop_s == Approx(truth.linear_flop_s).epsilon(1e-6));
  CHECK(found.linear_element_s == Approx(0.0).margin(1e-16));
  CHECK(found.element_s == Approx(truth.element_s).epsilon(1e-6));
}

TEST_CASE("noise in the times stays small in what the fit predicts", "[plan]") {
  DeviceModel fitted;
  FitRates(Observed(0.05), Rates(), fitted);
  for (const double error : RelativeErrors(Observed(0.0), fitted)) CHECK(std::abs(error) < 0.06);
  // No rate is below 0, which would make some shape faster than nothing.
  CHECK(fitted.rates.forward.linear_element_s >= 0.0);
}

TEST_CASE("a profile that is written and read again is the same device", "[plan]") {
  DeviceModel device = Truth();
  device.source = "a test";
  device.memory_bytes = 24e9;
  device.rates.backward = {1, 2, 3, 4, 5, 6};
  device.rates.pass_s = 7;
  device.modules["vision"] = {.rates = {.forward = {8, 9, 10, 11, 12, 13},
                                        .backward = {14, 15, 16, 17, 18, 19},
                                        .pass_s = 20},
                              .largest_flops = 21,
                              .median_error = 0.22,
                              .worst_error = 0.23,
                              .spread = 0.24};
  device.update_parameter_s = 25;
  device.sum_byte_s = 26;
  device.collective_s = 31;
  device.step_s = 27;
  device.message_s = 30;
  device.topology = {
      .devices_per_node = 2, .inside = {.latency_s = 28e-6}, .between = {29e-6, 3e9}};
  const std::string path = std::filesystem::temp_directory_path() / "troupe_profile_test.json";
  std::ofstream(path) << ProfileText(device, {Precision::kFloat64, {}, {}});
  RunConfig run;
  run.precision = Precision::kFloat64;
  const DeviceModel read = ReadDevice(path, run);
  CHECK(read.rates == device.rates);
  CHECK(read.RatesOf("vision") == device.RatesOf("vision"));
  CHECK(read.RatesOf("audio") == device.rates);
  CHECK(read.modules.at("vision").largest_flops == 21);
  CHECK(read.modules.at("vision").worst_error == 0.23);
  CHECK(read.memory_bytes == Approx(24e9));
  CHECK(read.update_parameter_s == 25);
  CHECK(read.sum_byte_s == 26);
  CHECK(read.collective_s == 31);
  CHECK(read.step_s == 27);
  CHECK(read.message_s == 30);
  CHECK(read.topology.devices_per_node == 2);
  CHECK(read.topology.inside.latency_s == Approx(28e-6));
  CHECK(read.topology.inside.bytes_per_s == std::numeric_limits<double>::infinity());
  CHECK(read.topology.between.bytes_per_s == Approx(3e9));
  run.precision = Precision::kFloat32;
  CHECK_THROWS_WITH(ReadDevice(path, run),
                    Catch::Contains("measured with precision") && Catch::Contains("\"float32\""));
  std::filesystem::remove(path);
}

TEST_CASE("files of devices are refused with their fault", "[plan]") {
  const std::string path = std::filesystem::temp_directory_path() / "troupe_device_test.json";
  const auto fault_of = [&](const std::string& text) {
    std::ofstream(path) << text;
    try {
      ReadDevice(path, {});
    } catch (const std::runtime_error& error) {
      return std::string(error.what()).substr(path.size());
    }
    return std::string("none");
  };
  CHECK(fault_of("[]") != "none");
  CHECK(fault_of("{}") == ": expected a device, \"format\": \"troupe-device-1\"");
  CHECK(fault_of(R"({"format": "troupe-device-1", "speed": 3})").find("unknown key \"speed\"") !=
        std::string::npos);
  CHECK(fault_of(R"({"format": "troupe-device-1"})") == ": peak_tflops is missing");
  CHECK(fault_of(R"({"format": "troupe-device-1", "peak_tflops": {"float32": -1}})")
            .find("peak_tflops: float32: expected a number from 0 to 1e24, got") !=
        std::string::npos);
  DeviceModel measured;
  measured.memory_bytes = 1e9;
  const std::string profile = ProfileText(measured, {Precision::kFloat32, {}, {}});
  const auto without = [&](const char* key) {
    auto json = nlohmann::json::parse(profile);
    json.erase(key);
    return fault_of(json.dump());
  };
  CHECK(fault_of(profile) == "none");
  for (const char* key : {"precision", "all", "modules", "memory_gb", "step_s"}) {
    CHECK(without(key) == ": " + std::string(key) + " is missing");
  }
  CHECK_THROWS_WITH(ReadDevice("h100", {}), Catch::Contains("expected a100-80g, "));
  std::filesystem::remove(path);
}

TEST_CASE("every known device is complete in every precision", "[plan]") {
  for (const std::string& name : KnownDevices()) {
    for (const Precision precision :
         {Precision::kFloat32, Precision::kFloat64, Precision::kBFloat16}) {
      RunConfig run;
      run.precision = precision;
      const DeviceModel device = ReadDevice(name, run);
      CHECK(device.memory_bytes > 40e9);
      CHECK(device.peak_flops_per_s > 1e12);
      CHECK(device.rates.forward.linear_flop_s * device.peak_flops_per_s > 1.0);
      CHECK(device.topology.inside.bytes_per_s > device.topology.between.bytes_per_s);
      CHECK(!device.source.empty());
    }
  }
}

}  // namespace troupe
