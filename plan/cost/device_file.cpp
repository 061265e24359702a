#include "plan/cost/device_file.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "configs/precision_words.hpp"
#include "files/strict_json.hpp"
#include "files/text_file.hpp"
#include "layout/text.hpp"
#include "plan/cost/device_texts.hpp"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "troupe-device-1";

// Shares of the specifications that large passes reach (bench/paper_tables, fitted on an H100).
constexpr double kLinearShare = 0.82;
constexpr double kAttentionShare = 0.355;
/// Linear layers and norms read and write about twice what they would have to.
constexpr double kTraffic = 2.0;
/// A guess: the start of a kernel.
constexpr double kOperationS = 3e-6;
/// The optimizer reads four values of a parameter and writes three.
constexpr double kUpdateBytes = 28.0;

const std::vector<std::pair<const char*, double OperationRates::*>> kOperationKeys = {
    {"operation_s", &OperationRates::operation_s},
    {"linear_flop_s", &OperationRates::linear_flop_s},
    {"linear_element_s", &OperationRates::linear_element_s},
    {"attention_flop_s", &OperationRates::attention_flop_s},
    {"attention_score_s", &OperationRates::attention_score_s},
    {"element_s", &OperationRates::element_s}};
const std::vector<std::pair<const char*, double ProfiledModule::*>> kModuleKeys = {
    {"largest_flops", &ProfiledModule::largest_flops},
    {"median_error", &ProfiledModule::median_error},
    {"worst_error", &ProfiledModule::worst_error},
    {"spread", &ProfiledModule::spread}};
const std::vector<std::pair<const char*, double DeviceModel::*>> kDeviceKeys = {
    {"update_parameter_s", &DeviceModel::update_parameter_s},
    {"collective_s", &DeviceModel::collective_s},
    {"sum_byte_s", &DeviceModel::sum_byte_s},
    {"message_s", &DeviceModel::message_s},
    {"step_s", &DeviceModel::step_s}};

/// An object of a file, all of whose keys must be known.
class Object {
 public:
  Object(const nlohmann::json& json, std::string place, const std::vector<std::string>& keys)
      : json_(json), place_(std::move(place)) {
    if (!json.is_object()) Fail("expected an object");
    for (const auto& [key, value] : json.items()) {
      if (std::ranges::find(keys, key) == keys.end()) {
        Fail("unknown key " + QuoteText(key) + "; expected " + Listed(keys));
      }
    }
  }

  [[noreturn]] void Fail(const std::string& fault) const {
    throw std::runtime_error(place_ + ": " + fault);
  }
  const nlohmann::json& At(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) Fail(std::string(key) + " is missing");
    return *found;
  }
  /// Returns a number, 0 or more.
  double Number(const char* key) const {
    const nlohmann::json& value = At(key);
    constexpr double kMost = 1e24;
    if (!value.is_number() || value.get<double>() < 0.0 || value.get<double>() > kMost) {
      Fail(std::string(key) + ": expected a number from 0 to 1e24, got " + value.dump());
    }
    return value.get<double>();
  }
  double Positive(const char* key) const {
    const double value = Number(key);
    constexpr double kLeast = 1e-9;
    if (value < kLeast) Fail(std::string(key) + ": expected a number of at least 1e-9");
    return value;
  }
  /// Returns 0 if the key is not there.
  double OptionalPositive(const char* key) const {
    return json_.contains(key) ? Positive(key) : 0.0;
  }
  std::string Text(const char* key) const {
    const nlohmann::json& value = At(key);
    if (!value.is_string()) Fail(std::string(key) + ": expected text");
    return value.get<std::string>();
  }
  std::string Below(const char* key) const { return place_ + ": " + key; }

 private:
  const nlohmann::json& json_;
  std::string place_;
};

/// null: as fast as one likes.
LinkRate LinkOf(const Object& file, const char* key) {
  const Object link(file.At(key), file.Below(key), {"us", "gb_per_s"});
  LinkRate rate{.latency_s = link.Number("us") * 1e-6};
  if (!link.At("gb_per_s").is_null()) rate.bytes_per_s = link.Positive("gb_per_s") * 1e9;
  return rate;
}

Topology TopologyOf(const Object& file) {
  const double devices = file.Positive("devices_per_node");
  if (devices != std::floor(devices) || devices > 65'536) {
    file.Fail("devices_per_node: expected an integer from 1 to 65536");
  }
  return {.devices_per_node = static_cast<int>(devices),
          .inside = LinkOf(file, "inside"),
          .between = LinkOf(file, "between"),
          .rails = std::min(1.0, file.Number("rails"))};
}

OperationRates RatesOf(const Object& file, const char* key) {
  std::vector<std::string> keys;
  for (const auto& [name, rate] : kOperationKeys) keys.emplace_back(name);
  const Object object(file.At(key), file.Below(key), keys);
  OperationRates rates;
  for (const auto& [name, rate] : kOperationKeys) rates.*rate = object.Number(name);
  return rates;
}

ProfiledModule ModuleOf(const nlohmann::json& json, const std::string& place) {
  const Object object(
      json, place,
      {"forward", "backward", "pass_s", "largest_flops", "median_error", "worst_error", "spread"});
  ProfiledModule module;
  module.rates = {.forward = RatesOf(object, "forward"),
                  .backward = RatesOf(object, "backward"),
                  .pass_s = object.Number("pass_s")};
  for (const auto& [name, value] : kModuleKeys) module.*value = object.Number(name);
  return module;
}

DeviceModel Specified(const nlohmann::json& json, const std::string& place, const RunConfig& run) {
  const Object file(json, place,
                    {"format", "made", "source", "memory_gb", "memory_gb_per_s", "peak_tflops",
                     "host_gb_per_s", "devices_per_node", "inside", "between", "rails", "sources"});
  const std::vector<std::string> types = {"bfloat16", "tf32", "float32", "float64"};
  const Object peaks(file.At("peak_tflops"), file.Below("peak_tflops"), types);
  const bool tf32 = run.precision == Precision::kFloat32 && run.tf32;
  const std::string& type =
      tf32 ? types[1] : kPrecisionWords.at(static_cast<std::size_t>(run.precision));
  const double peak = peaks.Positive(type.c_str()) * 1e12;
  const double byte_s = 1.0 / (file.Positive("memory_gb_per_s") * 1e9);
  const double element = run.precision == Precision::kBFloat16  ? 2.0
                         : run.precision == Precision::kFloat64 ? 8.0
                                                                : 4.0;
  const OperationRates rates{.operation_s = kOperationS,
                             .linear_flop_s = 1.0 / (peak * kLinearShare),
                             .linear_element_s = kTraffic * element * byte_s,
                             .attention_flop_s = 1.0 / (peak * kAttentionShare),
                             .attention_score_s = 0.0,
                             .element_s = kTraffic * element * byte_s};
  DeviceModel device;
  device.source = file.Text("source");
  device.memory_bytes = file.Positive("memory_gb") * 1e9;
  device.peak_flops_per_s = peak;
  device.rates = {.forward = rates, .backward = rates, .pass_s = 0.0};
  device.update_parameter_s = kUpdateBytes * byte_s;
  device.host_bytes_per_s = file.OptionalPositive("host_gb_per_s") * 1e9;
  device.topology = TopologyOf(file);
  return device;
}

DeviceModel Measured(const nlohmann::json& json, const std::string& place, const RunConfig& run) {
  const Object file(
      json, place,
      {"format", "made", "source", "precision", "conditions", "memory_gb", "devices_per_node",
       "inside", "between", "rails", "update_parameter_s", "collective_s", "sum_byte_s",
       "message_s", "step_s", "all", "modules", "passes"});
  const std::string& precision = kPrecisionWords.at(static_cast<std::size_t>(run.precision));
  if (file.Text("precision") != precision) {
    file.Fail("measured with precision " + QuoteText(file.Text("precision")) +
              ", and this is a run of " + QuoteText(precision) +
              "; expected a profile of the same");
  }
  DeviceModel device;
  device.source = file.Text("source");
  device.memory_bytes = file.Positive("memory_gb") * 1e9;
  device.topology = TopologyOf(file);
  for (const auto& [name, value] : kDeviceKeys) device.*value = file.Number(name);
  device.rates = ModuleOf(file.At("all"), file.Below("all")).rates;
  for (const auto& [name, module] : file.At("modules").items()) {
    device.modules[name] = ModuleOf(module, file.Below("modules") + ": " + Printable(name));
  }
  return device;
}

Json JsonOf(const LinkRate& link) {
  Json json = {{"us", link.latency_s * 1e6}, {"gb_per_s", nullptr}};
  if (std::isfinite(link.bytes_per_s)) json["gb_per_s"] = link.bytes_per_s * 1e-9;
  return json;
}

Json JsonOf(const OperationRates& rates) {
  Json json;
  for (const auto& [name, rate] : kOperationKeys) json[name] = rates.*rate;
  return json;
}

Json JsonOf(const ProfiledModule& module) {
  Json json = {{"forward", JsonOf(module.rates.forward)},
               {"backward", JsonOf(module.rates.backward)},
               {"pass_s", module.rates.pass_s}};
  for (const auto& [name, value] : kModuleKeys) json[name] = module.*value;
  return json;
}

std::string TextOf(const std::string& name_or_path) {
  for (const DeviceText& known : DeviceTexts()) {
    if (known.name == name_or_path) return std::string(known.text);
  }
  if (!std::filesystem::exists(name_or_path)) {
    throw std::runtime_error("expected " + Listed(KnownDevices()) + " or a file, got " +
                             QuoteText(name_or_path));
  }
  return ReadWholeFile(name_or_path);
}

}  // namespace

std::vector<std::string> KnownDevices() {
  std::vector<std::string> names;
  for (const DeviceText& known : DeviceTexts()) names.emplace_back(known.name);
  std::ranges::sort(names);
  return names;
}

DeviceModel ReadDevice(const std::string& name_or_path, const RunConfig& run) {
  constexpr int kDepth = 5;
  const nlohmann::json json = ParseStrictJson(TextOf(name_or_path), name_or_path, kDepth);
  if (!json.contains("format") || json["format"] != kFormat) {
    throw std::runtime_error(name_or_path + ": expected a device, \"format\": \"" + kFormat + "\"");
  }
  // A file with any key that only profiles have is read as one, so that an error names the key that is missing.
  const bool measured =
      json.contains("precision") || json.contains("all") || json.contains("modules");
  DeviceModel device =
      measured ? Measured(json, name_or_path, run) : Specified(json, name_or_path, run);
  device.name = name_or_path;
  return device;
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

std::string ProfileText(const DeviceModel& device, const ProfileFacts& facts) {
  Json json = {{"format", kFormat},
               {"made", "by troupe profile"},
               {"source", device.source},
               {"precision", kPrecisionWords.at(static_cast<std::size_t>(facts.precision))},
               {"conditions", Json::object()},
               {"memory_gb", device.memory_bytes * 1e-9},
               {"devices_per_node", device.topology.devices_per_node},
               {"inside", JsonOf(device.topology.inside)},
               {"between", JsonOf(device.topology.between)},
               {"rails", device.topology.rails}};
  for (const auto& [key, text] : facts.conditions) json["conditions"][key] = text;
  for (const auto& [name, value] : kDeviceKeys) json[name] = device.*value;
  ProfiledModule all;
  all.rates = device.rates;
  json["all"] = JsonOf(all);
  json["modules"] = Json::object();
  for (const auto& [name, module] : device.modules) json["modules"][name] = JsonOf(module);
  json["passes"] = Json::array();
  for (const ProfiledPass& pass : facts.passes) {
    json["passes"].push_back({{"module", pass.module},
                              {"work", pass.work},
                              {"measured_ms", pass.measured_ms},
                              {"fitted_ms", pass.fitted_ms},
                              {"spread", pass.spread}});
  }
  return json.dump(2) + "\n";
}

}  // namespace troupe
