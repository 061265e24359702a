// A command of a device: its names, its record in the trace, its failures and its tensors.
#include <algorithm>
#include <exception>
#include <stdexcept>

#include "actors/device_actor.hpp"
#include "cluster/text.hpp"
#include "modules/finite.hpp"
#include "trace/work_usage.hpp"

namespace troupe {
namespace {

struct WorkWords {
  const char* name;
  const char* unit;  ///< the name of its unit; null if it has none
};

/// By WorkKind.
constexpr std::array<WorkWords, kNumWorkKinds + 1> kWords = {{{"work", nullptr},
                                                              {"forward", "microbatch "},
                                                              {"backward", "microbatch "},
                                                              {"gradient reduction", nullptr},
                                                              {"parameter update", nullptr},
                                                              {"row exchange", nullptr},
                                                              {"weight gradients", "microbatch "},
                                                              {"offload", "window "},
                                                              {"restore", "window "},
                                                              {"checkpoint", nullptr},
                                                              {"sum of gradients", nullptr},
                                                              {"gathering of parameters", nullptr},
                                                              {"wait for replicas", nullptr},
                                                              {"activations out", nullptr},
                                                              {"activations back", nullptr},
                                                              {"wait for activations", nullptr},
                                                              {"snapshot", nullptr},
                                                              {"checkpoint", nullptr},
                                                              {"wait for snapshot", nullptr},
                                                              {"mirror", nullptr}}};

const WorkWords& WordsOf(WorkKind kind) { return kWords.at(static_cast<std::size_t>(kind)); }

/// " (samples 0008, 0012 and 6 more)"; empty if no sample has an id.
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

/// "vision.s0 dp1 rank 5 forward of step 39 mb 1 (samples 0008, 0012)".
std::string Describe(const DeviceConfig& config, const DeviceWork& work) {
  const auto shard = config.shards.find(work.stage);
  const std::string owner = shard == config.shards.end() ? "rank " + std::to_string(config.rank)
                                                         : ToString(shard->second);
  if (work.untraced) return owner + " " + work.untraced;
  const std::string text = owner + " " + WordsOf(work.kind).name;
  const std::string place = ToString(work.place);
  if (!place.empty()) return text + " of " + place + SamplesText(work.samples);
  const char* const unit = WordsOf(work.kind).unit;
  return unit ? text + " of " + unit + std::to_string(work.unit) : text;
}

}  // namespace

static_assert(kNumLanes == 2, "pieces of two other lanes may overlap each other");

std::int64_t LaneTimes::Count(Lane lane, std::int64_t begin_ns, std::int64_t end_ns) {
  const auto own = static_cast<std::size_t>(lane);
  std::int64_t fresh_ns = end_ns - begin_ns;
  for (const Piece& other : counted_[1 - own]) {
    const std::int64_t from_ns = std::max(begin_ns, other.begin_ns);
    fresh_ns -= std::max<std::int64_t>(std::min(end_ns, other.end_ns) - from_ns, 0);
  }
  counted_[own].push_back({begin_ns, end_ns});
  return std::max<std::int64_t>(fresh_ns, 0);  // the clocks of lanes are read separately
}

void LaneTimes::Emptied(Lane lane) { counted_[1 - static_cast<std::size_t>(lane)].clear(); }

std::string RangeName(const DeviceConfig& config, const DeviceWork& work) {
  const auto shard = config.shards.find(work.stage);
  std::string text = shard == config.shards.end()
                         ? "rank " + std::to_string(config.rank)
                         : shard->second.module + ".s" + std::to_string(shard->second.pp);
  const char* const unit = WordsOf(work.kind).unit;
  if (unit) text += std::string("/") + unit + std::to_string(work.unit);
  return text + "/" + (work.untraced ? work.untraced : WordsOf(work.kind).name);
}

void Record(const DeviceConfig& config, const DeviceWork& work, const WorkTimes& times,
            const CoreTime& cores) {
  if (!config.trace || work.untraced) return;
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

void RecordHeld(const DeviceConfig& config, const DeviceWork& work, std::int64_t held_ns) {
  if (held_ns == 0) return;
  DeviceWork held = work;
  held.kind = WorkKind::kSnapshotWait;
  held.unit = work.place.step - 1;  // the step of the snapshot
  const std::int64_t now_ns = NowNs();
  Record(config, held, {now_ns - held_ns, now_ns, {}});
}

void RecordConcurrent(const DeviceConfig& config, const DeviceWork& work, StageProgram& program) {
  for (const ConcurrentWork& done : program.TakeConcurrent()) {
    DeviceWork one = work;
    one.kind = done.kind;
    one.unit = 0;
    Record(config, one, done.times);
  }
}

caf::error FailWork(const DeviceConfig& config, const DeviceWork& work, const Failure& cause) {
  const Failure failure(Describe(config, work) + ": " + FirstLine(cause.text), cause.kind);
  config.abort->Raise(failure);
  return MakeFailure(failure);
}

caf::error FailWork(const DeviceConfig& config, const DeviceWork& work) {
  try {
    throw;
  } catch (const Aborted&) {
    return MakeFailure(config.abort->failure());
  } catch (...) {
    return FailWork(config, work, ThrownFailure());
  }
}

void RequireFinite(const std::vector<Buffer>& buffers, const char* kind) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto bad = NonFinite(buffers[i]);
    if (bad) throw std::runtime_error(kind + (" " + std::to_string(i)) + " is not finite: " + *bad);
  }
}

void FetchToDevice(DeviceState& s, std::vector<Buffer>& buffers, const char* kind) {
  for (Buffer& buffer : buffers) {
    buffer = s.rows().Here(s.config.tensors->FetchNow(buffer, kind, s.config.gpu));
  }
}

std::shared_ptr<const Inputs> FetchToHost(const DeviceState& s,
                                          const std::shared_ptr<const Inputs>& inputs) {
  if (!inputs) return inputs;
  bool local = true;
  ForEachBuffer(*inputs,
                [&](const Buffer& buffer, const std::string&) { local = local && buffer.local(); });
  if (local) return inputs;
  auto data = std::make_shared<Inputs>(*inputs);
  ForEachBuffer(*data, [&](Buffer& buffer, const std::string& what) {
    buffer = s.config.tensors->FetchNow(buffer, what);
  });
  return data;
}

}  // namespace troupe
