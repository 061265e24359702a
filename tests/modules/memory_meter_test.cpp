#include "modules/memory_meter.hpp"

#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "modules/memory_meter.hpp"

namespace troupe {
namespace {

/// VmRSS of /proc/self/status, which is in kB: another file than the meter reads.
std::int64_t ResidentByStatus() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib * 1024;
  }
  return 0;
}

/// Passes the time in which a meter does not look again.
void LetPass() { std::this_thread::sleep_for(std::chrono::nanoseconds(ResidentMemory::kEveryNs)); }

}  // namespace

TEST_CASE("the resident bytes of the process are what the kernel says, and grow with it",
          "[modules]") {
  constexpr std::size_t kMore = 64 << 20;
  constexpr double kSlack = 16 << 20;
  ResidentMemory meter;
  const std::int64_t before = meter.UseOf(0).in_use_bytes;
  CHECK(static_cast<double>(before) ==
        Approx(static_cast<double>(ResidentByStatus())).margin(kSlack));
  std::vector<char> more(kMore);
  std::memset(more.data(), 1, more.size());
  LetPass();
  const std::int64_t after = meter.UseOf(0).in_use_bytes;
  CHECK(after > before + static_cast<std::int64_t>(kMore - kSlack));
  CHECK(static_cast<double>(after) ==
        Approx(static_cast<double>(ResidentByStatus())).margin(kSlack));
}

TEST_CASE("bytes that stand for memory next to a device are not the device's", "[modules]") {
  ResidentMemory meter;
  const std::int64_t before = meter.UseOf(0).in_use_bytes;
  {
    const CountedSideMemory beside(1 << 20);
    LetPass();
    CHECK(meter.UseOf(0).in_use_bytes < before - (1 << 19));
    const CountedSideMemory all(std::int64_t{1} << 50);
    LetPass();
    CHECK(meter.UseOf(0).in_use_bytes == 0);  // not known rather than negative
  }
  LetPass();
  CHECK(meter.UseOf(0).in_use_bytes > before - (1 << 19));
}

TEST_CASE("many devices ask one meter at once", "[modules][threads]") {
  ResidentMemory meter;
  std::vector<std::thread> devices;
  std::atomic<int> wrong = 0;
  for (int d = 0; d < 4; ++d) {
    devices.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) wrong += meter.UseOf(0).in_use_bytes > 1 << 20 ? 0 : 1;
    });
  }
  for (std::thread& device : devices) device.join();
  CHECK(wrong == 0);
}

}  // namespace troupe
