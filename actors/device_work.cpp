#include "actors/device_work.hpp"

#include <algorithm>

#include "cluster/text.hpp"
#include "modules/memory_meter.hpp"
#include "trace/pass_record.hpp"
#include "trace/work_memory.hpp"

namespace troupe {
namespace {

const char* NameOf(WorkKind kind) {
  switch (kind) {
    case WorkKind::kForward:
      return "forward";
    case WorkKind::kBackward:
      return "backward";
    case WorkKind::kWeight:
      return "weight gradients";
    case WorkKind::kReduce:
      return "gradient reduction";
    case WorkKind::kUpdate:
      return "parameter update";
    case WorkKind::kExchange:
      return "row exchange";
    case WorkKind::kOffload:
      return "offload";
    case WorkKind::kRestore:
      return "restore";
    case WorkKind::kCheckpoint:
      return "checkpoint";
  }
  return "work";
}

/// What its unit is; null where it has none.
const char* UnitOf(WorkKind kind) {
  switch (kind) {
    case WorkKind::kForward:
    case WorkKind::kBackward:
    case WorkKind::kWeight:
      return "microbatch ";
    case WorkKind::kOffload:
    case WorkKind::kRestore:
      return "window ";
    default:
      return nullptr;
  }
}

/// " (samples 0008, 0012 and 6 more)"; empty where none has an id.
std::string SamplesText(const std::vector<std::string>& samples) {
  std::vector<std::string> names;
  for (const std::string& name : samples) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  if (names.empty()) return "";
  return (names.size() == 1 ? " (sample " : " (samples ") + Enumerate(names) + ')';
}

WorkMemory MemoryOf(const DeviceConfig& config) {
  if (!config.memory) return {};
  const MemoryUse use = config.memory->UseOf(config.rank);
  const int gpu = config.gpu == Buffer::kHost ? WorkMemory::kOfProcess : config.gpu;
  return {use.in_use_bytes, use.reserved_bytes, use.peak_bytes, gpu};
}

}  // namespace

std::string Describe(const DeviceConfig& config, const DeviceWork& work) {
  const auto shard = config.shards.find(work.stage);
  const std::string who = shard == config.shards.end() ? "rank " + std::to_string(config.rank)
                                                       : ToString(shard->second);
  if (work.aside) return who + " " + work.aside;
  const std::string text = who + " " + NameOf(work.kind);
  const std::string place = ToString(work.place);
  if (!place.empty()) return text + " of " + place + SamplesText(work.samples);
  const char* const unit = UnitOf(work.kind);
  return unit ? text + " of " + unit + std::to_string(work.unit) : text;
}

std::string RangeName(const DeviceConfig& config, const DeviceWork& work) {
  const auto shard = config.shards.find(work.stage);
  std::string text = shard == config.shards.end()
                         ? "rank " + std::to_string(config.rank)
                         : shard->second.module + ".s" + std::to_string(shard->second.pp);
  const char* const unit = UnitOf(work.kind);
  if (unit) text += std::string("/") + unit + std::to_string(work.unit);
  return text + "/" + (work.aside ? work.aside : NameOf(work.kind));
}

void Record(const DeviceConfig& config, const DeviceWork& work, const WorkTimes& times,
            const CoreTime& cores) {
  if (!config.trace || work.aside) return;
  TraceRecord record;
  record.work = static_cast<std::uint8_t>(work.kind);
  record.stage = static_cast<std::int32_t>(work.stage);
  record.rank = static_cast<std::int16_t>(config.rank);
  const auto shard = config.shards.find(work.stage);
  record.dp = static_cast<std::int16_t>(shard == config.shards.end() ? 0 : shard->second.dp);
  record.unit = work.unit;
  record.round = static_cast<std::int32_t>(work.round);
  record.begin_ns = times.begin_ns;
  record.end_ns = times.end_ns;
  SetMemory(record, MemoryOf(config));
  SetCoreTime(record, cores);
  config.trace->Worked(record);
}

}  // namespace troupe
