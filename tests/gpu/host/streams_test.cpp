// Streams, events and their callbacks, on an emulated device.
#include <atomic>
#include <future>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "gpu/check.hpp"
#include "gpu/completion.hpp"
#include "gpu/device.hpp"
#include "gpu/nvtx.hpp"
#include "tests/gpu/emulated/machine.hpp"
#include "tests/gpu/host/on_device.hpp"

using namespace troupe;
using namespace troupe::gpu;
using namespace troupe::testing;
using emulated::Machine;
using namespace std::chrono_literals;

namespace {

constexpr const char* kIllegal =
    "cudaErrorIllegalAddress (an illegal memory access was encountered)";

/// Holds a stream up until it is let go.
class Gate {
 public:
  Gate(Machine& machine, const Stream& stream) {
    machine.InTurn(stream.get(), [wait = open_.get_future().share()] { wait.wait(); });
  }
  ~Gate() { Open(); }
  void Open() {
    if (!std::exchange(is_open_, true)) open_.set_value();
  }

 private:
  std::promise<void> open_;
  bool is_open_ = false;
};

std::vector<int> Numbers(int first, std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace

TEST_CASE("a machine without a device has none, one with two knows them") {
  {
    const Machine machine({.num_devices = 0});
    CHECK(NumDevices() == 0);
    CHECK(cudaGetLastError() == cudaSuccess);
  }
  const Machine machine;
  CHECK(NumDevices() == 2);
  CHECK(FactsOf(1).name == "Emulated GPU");
  CHECK_THROWS_WITH(FactsOf(2), Catch::Contains("cudaErrorInvalidDevice"));
}

TEST_CASE("a thread talks to a device while the guard lives") {
  const Machine machine;
  const auto current = [] {
    int device = -1;
    TROUPE_CUDA(cudaGetDevice(&device));
    return device;
  };
  {
    const DeviceGuard guard(1);
    CHECK(current() == 1);
    const DeviceGuard back(0);
    CHECK(current() == 0);
  }
  CHECK(current() == 0);
  CHECK_THROWS_AS(DeviceGuard(7), CudaError);
}

TEST_CASE("a device that no guard was on is not gone back to") {
  const Machine machine({.num_devices = 60});  // of numbers that no other test uses
  const auto current = [] {
    int device = -1;
    TROUPE_CUDA(cudaGetDevice(&device));
    return device;
  };
  TROUPE_CUDA(cudaSetDevice(50));
  { const DeviceGuard guard(51); }
  CHECK(current() == 51);
  { const DeviceGuard guard(52); }
  CHECK(current() == 51);
  { const DeviceGuard guard(50); }
  CHECK(current() == 51);
  TROUPE_CUDA(cudaSetDevice(0));
}

TEST_CASE("a stream waits for an event of another one, the thread does not") {
  Machine machine({.max_delay = 300us});
  {
    const Stream first(0);
    const Stream second(0);
    MemoryPool pool(0);
    const auto source = Numbers(5, 1000);
    const auto there = pool.Allocate(4000, first);
    const auto pinned = AllocatePinned(4000);
    const auto back = AllocatePinned(4000);
    std::copy(source.begin(), source.end(), static_cast<int*>(pinned.get()));
    Gate gate(machine, first);
    Copy(first, there.get(), pinned.get(), 4000, Way::kToDevice);
    Event copied(0);
    CHECK(cudaEventQuery(copied.get()) == cudaSuccess);  // never recorded
    copied.Record(first);
    second.Wait(copied);
    Copy(second, back.get(), there.get(), 4000, Way::kToHost);
    CHECK(cudaEventQuery(copied.get()) == cudaErrorNotReady);
    gate.Open();
    second.Synchronize();
    CHECK(cudaEventQuery(copied.get()) == cudaSuccess);
    CHECK(std::equal(source.begin(), source.end(), static_cast<const int*>(back.get())));
  }
  CHECK(machine.fault().empty());
  CHECK(machine.open() == Machine::kNothing);
}

TEST_CASE("without the event the emulated device shows what is missing") {
  Machine machine;
  {
    const Stream first(0);
    const Stream second(0);
    MemoryPool pool(0);
    Gate gate(machine, first);
    const auto there = pool.Allocate(64, first);
    CHECK_NOTHROW(TROUPE_CUDA(cudaMemsetAsync(there.get(), 0, 64, second.get())));
    second.Synchronize();
  }
  CHECK(machine.fault() ==
        "a memset on device 0 uses memory before it is allocated in stream order");
}

TEST_CASE("callbacks of a stream come in order, once, and delay no later work") {
  Machine machine({.max_delay = 100us});
  {
    const Stream stream(0);
    std::mutex mutex;
    std::vector<int> told;
    std::promise<void> let_go;
    std::promise<void> after;
    stream.OnOutcome([&, wait = let_go.get_future().share()](const std::string&) { wait.wait(); });
    for (int i = 0; i < 20; ++i) {
      stream.OnOutcome([&, i](const std::string& error) {
        const std::lock_guard lock(mutex);
        told.push_back(error.empty() ? i : -1);
      });
    }
    // Queued behind a callback that does not return, and runs all the same.
    machine.InTurn(stream.get(), [&] { after.set_value(); });
    after.get_future().wait();
    {
      const std::lock_guard lock(mutex);
      CHECK(told.empty());
    }
    let_go.set_value();
    stream.Synchronize();
    CHECK(told == Numbers(0, 20));
  }
  CHECK(machine.fault().empty());
}

TEST_CASE("no callback runs before the work has run") {
  Machine machine;
  const Stream stream(1);
  std::atomic<bool> told = false;
  Gate gate(machine, stream);
  stream.OnOutcome([&](const std::string&) { told = true; });
  std::this_thread::sleep_for(2 * Completions::kPollInterval);  // nor because the device is polled
  CHECK_FALSE(told);
  gate.Open();
  stream.Synchronize();
  CHECK(told);
}

TEST_CASE("a device that fails tells all that was promised, once, in its words") {
  Machine machine;
  std::mutex mutex;
  std::vector<std::string> told;
  {
    const Stream stream(1);
    std::promise<void> all;
    const auto note = [&](const std::string& error) {
      const std::lock_guard lock(mutex);
      told.push_back(error);
      if (told.size() == 3) all.set_value();
    };
    stream.OnOutcome(note);
    stream.Synchronize();
    Gate gate(machine, stream);
    machine.BreakInTurn(stream.get());
    stream.OnOutcome(note);
    stream.OnOutcome(note);
    gate.Open();
    // By the thread that polls the device: no other call is made meanwhile.
    CHECK(all.get_future().wait_for(10s) == std::future_status::ready);
    CHECK_THROWS_WITH(stream.OnOutcome(note), Catch::Contains(kIllegal));
    CHECK_THROWS_WITH(stream.Synchronize(), Catch::Contains(kIllegal));
  }
  REQUIRE(told.size() == 3);
  CHECK(told[0].empty());
  CHECK_THAT(told[1], Catch::EndsWith(kIllegal));
  CHECK_THAT(told[2], Catch::EndsWith(kIllegal));
}

TEST_CASE("the end of a stream tells what its device did not come to") {
  Machine machine;
  std::atomic<int> told = 0;
  {
    const Stream stream(0);
    Gate gate(machine, stream);
    stream.OnOutcome([&](const std::string&) { ++told; });
    machine.Break(0);
  }
  CHECK(told == 1);
}

TEST_CASE("a device that failed leaves the other one alone") {
  Machine machine;
  const Stream whole(1);
  machine.Break(0);
  CHECK_THROWS_AS(Stream(0), CudaError);
  std::atomic<bool> told = false;
  whole.OnOutcome([&](const std::string&) { told = true; });
  whole.Synchronize();
  CHECK(told);
}

TEST_CASE("a callback that calls CUDA is found out") {
  Machine machine;
  const Stream stream(0);
  stream.OnOutcome([&](const std::string&) { static_cast<void>(cudaStreamQuery(stream.get())); });
  stream.Synchronize();
  CHECK(machine.fault() == "cudaStreamQuery is called by a host function");
}

TEST_CASE("timed events say how long the work between them took") {
  Machine machine;
  const Stream stream(1);
  Event begin(1, Event::Timed::kYes);
  Event end(1, Event::Timed::kYes);
  begin.Record(stream);
  machine.InTurn(stream.get(), [] { std::this_thread::sleep_for(3ms); });
  end.Record(stream);
  stream.Synchronize();
  CHECK(end.MillisecondsSince(begin) >= 3.0F);
  Event plain(1);
  plain.Record(stream);
  stream.Synchronize();
  CHECK_THROWS_AS(plain.MillisecondsSince(begin), CudaError);
}

TEST_CASE("ranges for NVIDIA's tools do nothing where there are none") {
  const Range whole("vision.s0/microbatch 3");
  const Range part("forward");
}
