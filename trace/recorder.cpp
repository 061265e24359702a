#include "trace/recorder.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <unistd.h>

#include "trace/clock.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little,
              "trace files hold records as they are in memory");

constexpr std::string_view kMagic = "TRPTRACE";
constexpr std::size_t kHeaderBytes = 4096;
constexpr std::size_t kNotedAt = 56;
/// Replaces the number of a record that is being written.
constexpr std::uint64_t kBeingWritten = ~std::uint64_t{0};
constexpr std::size_t kWords = sizeof(TraceRecord) / sizeof(std::uint64_t);
using Words = std::array<std::uint64_t, kWords>;

template <class T>
std::atomic_ref<T> AtomicAt(std::byte* address) {
  return std::atomic_ref<T>(*reinterpret_cast<T*>(address));
}

constexpr std::size_t WordOf(std::size_t offset) { return offset / sizeof(std::uint64_t); }

/// Rounds up to whole pages.
std::size_t Pages(std::size_t bytes) {
  return (bytes + kHeaderBytes - 1) / kHeaderBytes * kHeaderBytes;
}

std::int64_t WallMinusClock() {
  const auto wall = std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  return wall - NowNs();
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

/// Copies a record; returns nothing if it is being written at the same time.
bool Copy(std::byte* slot, TraceRecord& record) {
  const auto number = AtomicAt<std::uint64_t>(slot).load(std::memory_order_acquire);
  if (number == 0 || number == kBeingWritten) return false;
  Words words;
  for (std::size_t w = 0; w < kWords; ++w) {
    words[w] = AtomicAt<std::uint64_t>(slot + w * 8).load(std::memory_order_acquire);
  }
  if (AtomicAt<std::uint64_t>(slot).load(std::memory_order_acquire) != number) return false;
  words[0] = number;
  record = std::bit_cast<TraceRecord>(words);
  return true;
}

/// Sums and differences of such times fit: no steady clock reaches 36 years.
bool IsTime(std::int64_t ns) {
  constexpr std::int64_t kFarthest = std::int64_t{1} << 60;
  return -kFarthest < ns && ns < kFarthest;
}

/// Plausibility check of a record read from a file.
bool IsLikely(const TraceRecord& record) {
  return record.kind >= RecordKind::kMessage && record.kind <= RecordKind::kAnswered &&
         IsTime(record.sent_ns) && IsTime(record.arrived_ns) && IsTime(record.begin_ns) &&
         IsTime(record.end_ns);
}

std::int64_t TimeOf(const TraceRecord& record) {
  return std::max({record.sent_ns, record.arrived_ns, record.begin_ns});
}

/// Whether all times of `record` lie within 13 days of `middle_ns`. A ring holds minutes to hours;
/// exporters need the whole span below 2^53 ns, where a double still holds every nanosecond.
bool IsNear(const TraceRecord& record, std::int64_t middle_ns) {
  constexpr std::int64_t kFarthest = std::int64_t{1} << 50;
  const auto near = [&](std::int64_t ns) {
    return ns > middle_ns - kFarthest && ns < middle_ns + kFarthest;
  };
  const auto near_or_unset = [&](std::int64_t ns) { return ns == 0 || near(ns); };
  switch (record.kind) {
    case RecordKind::kMessage:
      return near(record.sent_ns) && near(record.arrived_ns) && near_or_unset(record.begin_ns) &&
             near_or_unset(record.end_ns);
    case RecordKind::kWork:
      return near(record.begin_ns) && near(record.end_ns);
    case RecordKind::kAnswered:
      return near(record.sent_ns);
  }
  return false;
}

/// Removes records whose times are far from the median; returns their number.
std::size_t RemoveFar(std::vector<TraceRecord>& records) {
  if (records.empty()) return 0;
  std::vector<std::int64_t> times;
  times.reserve(records.size());
  for (const TraceRecord& record : records) times.push_back(TimeOf(record));
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::ranges::nth_element(times, middle);
  return std::erase_if(records, [&](const TraceRecord& r) { return !IsNear(r, *middle); });
}

[[noreturn]] void Fail(const std::string& path, const std::string& what) {
  throw std::runtime_error(path + ": " + what);
}

TraceName ParseName(std::string_view line) {
  TraceName name;
  if (line.size() < 3) return name;
  name.kind = line[0];
  line.remove_prefix(2);
  const char* const end = line.data() + line.size();
  const auto [rest, error] = std::from_chars(line.data(), end, name.number);
  if (error != std::errc()) name.number = -1;
  name.text.assign(rest == end ? rest : rest + 1, end);
  return name;
}

TraceFile ReadMemory(const std::string& path, const MappedMemory& bytes) {
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    Fail(path, "not a trace file");
  }
  const auto get = [&]<class T>(std::size_t at, T) {
    // The counters of a live file change while it is read.
    return AtomicAt<T>(bytes.data() + at).load(std::memory_order_relaxed);
  };
  const auto expect = [&](const char* what, std::uint32_t got, std::uint32_t expected) {
    if (got == expected) return;
    Fail(path, "expected " + std::string(what) + " " + std::to_string(expected) + ", got " +
                   std::to_string(got));
  };
  expect("trace version", get(8, std::uint32_t{}), kTraceVersion);
  expect("record size", get(12, std::uint32_t{}), sizeof(TraceRecord));
  TraceFile file;
  file.capacity = get(16, std::uint64_t{});
  const auto records_at = get(24, std::uint64_t{});
  const auto names_at = get(32, std::uint64_t{});
  const auto names_bytes = get(40, std::uint64_t{});
  file.process = get(48, std::uint32_t{});
  file.processes = get(52, std::uint32_t{});
  file.noted = get(kNotedAt, std::uint64_t{});
  file.clock_offset_ns = get(64, std::int64_t{});
  file.pid = get(80, std::int64_t{});
  if (!IsTime(file.clock_offset_ns)) Fail(path, "corrupt header: invalid clock offset");
  if (file.capacity == 0 || records_at % sizeof(std::uint64_t) != 0 || names_at > records_at ||
      names_bytes > records_at - names_at || records_at > bytes.size()) {
    Fail(path, "corrupt header: it names bytes beyond the end of the file");
  }
  const std::string_view names(reinterpret_cast<const char*>(bytes.data()) + names_at, names_bytes);
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = std::min(names.find('\n', at), names.size());
    file.names.push_back(ParseName(names.substr(at, end - at)));
    at = end + 1;
  }
  // A truncated file lacks its end. Every slot identifies its own record.
  const std::uint64_t held = std::min(file.capacity, file.noted);
  const std::size_t slots =
      std::min<std::size_t>(held, (bytes.size() - records_at) / sizeof(TraceRecord));
  file.records.reserve(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    TraceRecord record;
    const bool whole = Copy(bytes.data() + records_at + i * sizeof(record), record);
    if (whole && IsLikely(record) && (record.number - 1) % file.capacity == i) {
      file.records.push_back(record);
    } else {
      ++file.torn;
    }
  }
  file.torn += held - slots + RemoveFar(file.records);
  std::sort(file.records.begin(), file.records.end(),
            [](const TraceRecord& a, const TraceRecord& b) { return a.number < b.number; });
  return file;
}

}  // namespace

Recorder::Recorder(const RecorderOptions& options)
    : memory_(options.path,
              kHeaderBytes + Pages(options.names_bytes) + options.capacity * sizeof(TraceRecord)),
      capacity_(options.capacity),
      prefix_(static_cast<std::uint64_t>(options.process + 1) << 48),
      names_at_(kHeaderBytes),
      records_at_(kHeaderBytes + Pages(options.names_bytes)) {
  if (capacity_ == 0)
    throw std::invalid_argument("trace: capacity of 0 records, expected at least 1");
  const auto put = [&](std::size_t at, const auto& value) {
    std::memcpy(memory_.data() + at, &value, sizeof(value));
  };
  put(8, kTraceVersion);
  put(12, static_cast<std::uint32_t>(sizeof(TraceRecord)));
  put(16, capacity_);
  put(24, static_cast<std::uint64_t>(records_at_));
  put(32, static_cast<std::uint64_t>(names_at_));
  put(48, static_cast<std::uint32_t>(options.process));
  put(52, static_cast<std::uint32_t>(options.processes.size()));
  put(72, WallMinusClock());
  put(80, static_cast<std::int64_t>(getpid()));
  const auto self = static_cast<std::size_t>(options.process);
  for (std::size_t p = 0; p < options.processes.size(); ++p) {
    AddName('Q', p, options.processes[p]);
    if (p == self) AddName('P', p, options.processes[p]);
  }
  AddName('H', self, HostName());
  if (options.cores > 0) AddName('C', self, std::to_string(options.cores));
  for (std::size_t s = 0; s < options.stages.size(); ++s) {
    AddName('S', s, EncodeStage(options.stages[s]));
  }
  for (std::size_t l = 0; l < options.links.size(); ++l) {
    const TraceLink& link = options.links[l];
    AddName('L', l,
            std::to_string(link.from) + " " + std::to_string(link.to) +
                (link.boundary ? " boundary " : " hop ") + link.name);
  }
  for (std::size_t d = 0; d < options.sources.size(); ++d) AddName('D', d, options.sources[d]);
  for (std::size_t t = 0; t < options.types.size(); ++t) AddName('T', t, options.types[t]);
  // Written last, so that a reader sees a complete header or none.
  std::memcpy(memory_.data(), kMagic.data(), kMagic.size());
}

std::byte* Recorder::Slot(std::uint64_t number) const {
  return memory_.data() + records_at_ + (number - 1) % capacity_ * sizeof(TraceRecord);
}

void Recorder::AddName(char kind, std::size_t number, const std::string& text) {
  const std::string line = std::string(1, kind) + " " + std::to_string(number) + " " + text + "\n";
  const std::lock_guard lock(names_mutex_);
  if (names_end_ + line.size() > records_at_ - names_at_) return;
  std::memcpy(memory_.data() + names_at_ + names_end_, line.data(), line.size());
  names_end_ += line.size();
  AtomicAt<std::uint64_t>(memory_.data() + 40).store(names_end_, std::memory_order_release);
}

void Recorder::NameActor(ActorNumber actor, const ActorId& id) {
  AddName('A', actor, EncodeActor(id));
}

void Recorder::SetClockOffset(std::int64_t offset_ns) {
  AtomicAt<std::int64_t>(memory_.data() + 64).store(offset_ns, std::memory_order_relaxed);
}

std::uint64_t Recorder::Note(TraceRecord record) {
  auto noted = AtomicAt<std::uint64_t>(memory_.data() + kNotedAt);
  const std::uint64_t number = noted.fetch_add(1, std::memory_order_relaxed) + 1;
  record.number = number;
  record.id = IdOf(number);
  const auto words = std::bit_cast<Words>(record);
  std::byte* const slot = Slot(number);
  // A thread that slept while the whole ring was written finds its slot taken. The newer record
  // stays.
  auto owner = AtomicAt<std::uint64_t>(slot);
  std::uint64_t before = owner.load(std::memory_order_acquire);
  if (before == kBeingWritten || before > number ||
      !owner.compare_exchange_strong(before, kBeingWritten, std::memory_order_acq_rel)) {
    return number;
  }
  for (std::size_t w = 1; w < kWords; ++w) {
    AtomicAt<std::uint64_t>(slot + w * 8).store(words[w], std::memory_order_release);
  }
  owner.store(number, std::memory_order_release);
  return number;
}

// If the slot is reused between the check and the write, the newer record gets a wrong time. That
// needs a whole ring of messages within nanoseconds.
void Recorder::Begin(std::uint64_t number, std::int64_t at_ns) {
  std::byte* const slot = Slot(number);
  if (AtomicAt<std::uint64_t>(slot).load(std::memory_order_acquire) != number) return;
  AtomicAt<std::int64_t>(slot + offsetof(TraceRecord, begin_ns))
      .store(at_ns, std::memory_order_release);
}

void Recorder::End(std::uint64_t number, std::int64_t at_ns, std::uint64_t first_request,
                   std::uint64_t last_request) {
  std::byte* const slot = Slot(number);
  if (AtomicAt<std::uint64_t>(slot).load(std::memory_order_acquire) != number) return;
  static_assert(offsetof(TraceRecord, last_request) == offsetof(TraceRecord, first_request) + 4);
  static_assert(offsetof(TraceRecord, first_request) % 8 == 0);
  if (last_request != first_request) {
    const std::uint64_t both = (last_request & 0xFFFFFFFF) << 32 | (first_request & 0xFFFFFFFF);
    AtomicAt<std::uint64_t>(slot + offsetof(TraceRecord, first_request))
        .store(both, std::memory_order_relaxed);
  }
  AtomicAt<std::int64_t>(slot + offsetof(TraceRecord, end_ns))
      .store(at_ns, std::memory_order_release);
}

std::uint64_t Recorder::noted() const {
  return AtomicAt<std::uint64_t>(memory_.data() + kNotedAt).load(std::memory_order_acquire);
}

std::uint64_t Recorder::dropped() const {
  const std::uint64_t all = noted();
  return all > capacity_ ? all - capacity_ : 0;
}

TraceFile Recorder::Snapshot() const { return ReadMemory("trace", memory_); }

TraceFile ReadTraceFile(const std::string& path) {
  return ReadMemory(path, MappedMemory::Open(path));
}

}  // namespace troupe
