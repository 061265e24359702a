#include "transport/timed_wait.hpp"

#include <thread>

#include <catch2/catch.hpp>

#include "transport/communicator.hpp"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kLate{50};

std::int64_t TimeIn(Communicator& member, std::chrono::milliseconds late) {
  const std::int64_t before = TimedWait::TotalNs();
  std::this_thread::sleep_for(late);
  member.Barrier();
  return TimedWait::TotalNs() - before;
}

}  // namespace

TEST_CASE("a member waits for a late one, and the late one does not") {
  const auto members = MakeLocalGroup(2, nullptr);
  std::int64_t waiting_ns = 0;
  std::int64_t late_ns = 0;
  std::thread other([&] { waiting_ns = TimeIn(*members[0], {}); });
  late_ns = TimeIn(*members[1], kLate);
  other.join();
  CHECK(waiting_ns + late_ns >= std::chrono::nanoseconds(kLate).count() * 9 / 10);
  CHECK(late_ns < waiting_ns);
}

TEST_CASE("nested waits are counted once") {
  const std::int64_t before = TimedWait::TotalNs();
  const auto begin = std::chrono::steady_clock::now();
  {
    const TimedWait outer;
    for (int i = 0; i < 3; ++i) {
      const TimedWait inner;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    CHECK(TimedWait::TotalNs() == before);
  }
  const std::int64_t counted = TimedWait::TotalNs() - before;
  CHECK(counted >= std::chrono::nanoseconds(std::chrono::milliseconds(15)).count());
  CHECK(counted <= std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
}

}  // namespace troupe
