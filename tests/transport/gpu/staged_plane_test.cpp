// Tensors on devices between processes: cut, staged and put together again.
#include "transport/gpu/staged_plane.hpp"

#include <future>
#include <random>
#include <set>

#include <catch2/catch.hpp>

#include "gpu/check.hpp"
#include "tests/gpu/emulated/machine.hpp"
#include "tests/gpu/host/on_device.hpp"
#include "tests/transport/gpu/device_buffers.hpp"
#include "tests/transport/gpu/host_only_plane.hpp"
#include "tests/transport/memory_plane.hpp"
#include "tests/transport/plane_job.hpp"

using namespace troupe;
using namespace troupe::testing;
using emulated::Machine;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kPiece = 5000;

/// Pulls of tensors of another store in this process.
class NoCarrier : public TensorCarrier {
 public:
  ProcessId self() const override { return 0; }
  void Pull(std::uint64_t, std::int64_t, Reception) override {}
  void Return(ProcessId, std::uint64_t, std::uint64_t) override {}
};

/// Two processes in one, with a device each.
struct Pair {
  explicit Pair(unsigned seed = 1, std::chrono::microseconds delay = 0us,
                CheckCopies check = CheckCopies::kNo)
      : machine({.max_delay = delay, .seed = seed}),
        staging0(std::make_unique<DeviceStaging>(check)),
        staging1(std::make_unique<DeviceStaging>(check)),
        network(2, abort, seed) {}

  /// As processes end: the planes behind first, then the copies, then what they use.
  ~Pair() {
    abort->Raise("the end");
    network.Stop();
    staging0.reset();
    staging1.reset();
  }

  StagedPlane& operator[](int process) { return process == 0 ? plane0 : plane1; }
  DeviceBuffers& device(int process) { return process == 0 ? device0 : device1; }

  Machine machine;
  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
  Outcomes sends{abort};
  Outcomes receives{abort};
  DeviceBuffers device0{0};
  DeviceBuffers device1{1};
  NoCarrier carrier;
  std::unique_ptr<DeviceStaging> staging0;
  std::unique_ptr<DeviceStaging> staging1;
  MemoryNetwork network;
  HostOnlyPlane host0{*network.plane(0)};
  HostOnlyPlane host1{*network.plane(1)};
  StagedPlane plane0{host0, carrier, *staging0, {false, kPiece, abort}};
  StagedPlane plane1{host1, carrier, *staging1, {false, kPiece, abort}};
};

}  // namespace

TEST_CASE("no two pieces of any messages have one label") {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  for (const std::uint64_t stream : {StreamOf("a"), StreamOf("b"), std::uint64_t{0},
                                     std::uint64_t{1}, std::uint64_t{2}, ~std::uint64_t{0}})
    for (const std::uint64_t sequence :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40})
      for (std::uint64_t piece = 0; piece < 2000; ++piece) {
        const Label label = LabelOfPiece({stream, sequence}, piece);
        REQUIRE(seen.emplace(label.stream, label.sequence).second);
      }
  CHECK(LabelOfPiece({7, 9}, 0).stream == 7);
}

TEST_CASE("a message arrives whole from any side to any side, whatever its size") {
  const bool from_device = GENERATE(false, true);
  const bool to_device = GENERATE(false, true);
  Pair pair(3, 100us, GENERATE(CheckCopies::kNo, CheckCopies::kYes));
  std::uint64_t number = 0;
  for (const std::int64_t size : {0, 1, 4999, 5000, 5001, 10000, 57003}) {
    const Buffer sent = Pattern(size, number + 1);
    Buffer got = to_device ? pair.device(1).Blank({size}) : Blank(size);
    pair[1].Receive({0, {5, number}, got, "test", pair.receives.Good(), pair.receives.Bad()});
    pair[0].Send(1, {5, number}, from_device ? pair.device(0).From(sent) : sent, pair.sends.Good());
    REQUIRE(pair.receives.Await(1));
    REQUIRE(pair.sends.Await(1));
    CHECK(pair.receives.TakeErrors().empty());
    CHECK(SameBytes(to_device ? pair.device(1).ToHost(got) : got, sent));
    ++number;
  }
  CHECK(pair.network.fault().empty());
  CHECK(pair.machine.fault().empty());
}

TEST_CASE("many messages at once, both ways, in any order") {
  const auto seed = GENERATE(as<unsigned>(), 1, 2, 3);
  Pair pair(seed, 50us);
  std::mt19937 random(seed);
  struct Message {
    int from;
    Label label;
    Buffer sent;
    Buffer got;
  };
  std::vector<Message> messages;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const int from = static_cast<int>(random() % 2);
    const Buffer sent = Pattern(static_cast<std::int64_t>(random() % 30000), i);
    Buffer got =
        random() % 3 == 0 ? Blank(sent.num_rows()) : pair.device(1 - from).Blank({sent.num_rows()});
    messages.push_back({from, {StreamOf("edge"), i}, sent, got});
  }
  std::vector<std::size_t> order(messages.size());
  std::iota(order.begin(), order.end(), 0U);
  for (int half = 0; half < 2; ++half) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      const Message& it = messages[i];
      if (half == 0) {
        pair[it.from].Send(1 - it.from, it.label,
                           i % 4 == 0 ? it.sent : pair.device(it.from).From(it.sent),
                           pair.sends.Good());
      } else {
        pair[1 - it.from].Receive(
            {it.from, it.label, it.got, "test", pair.receives.Good(), pair.receives.Bad()});
      }
    }
  }
  REQUIRE(pair.receives.Await(40));
  REQUIRE(pair.sends.Await(40));
  CHECK(pair.receives.TakeErrors().empty());
  for (const Message& it : messages)
    REQUIRE(
        SameBytes(it.got.on_host() ? it.got : pair.device(1 - it.from).ToHost(it.got), it.sent));
  CHECK(pair.network.fault().empty());
  CHECK(pair.network.num_unmatched() == 0);
  CHECK(pair.machine.fault().empty());
}

TEST_CASE("rows in parts travel as one message") {
  Pair pair;
  const Buffer sent = Pattern(12000, 3);
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return pair.device(0).From(sent.Rows(begin, end));
  };
  const Buffer rows = ConcatenateRows({part(0, 100), part(100, 7000), part(7000, 12000)});
  REQUIRE(rows.parts().size() == 3);
  Buffer got = pair.device(1).Blank({12000});
  pair[1].Receive({0, {5, 0}, got, "test", pair.receives.Good(), pair.receives.Bad()});
  pair[0].Send(1, {5, 0}, rows, pair.sends.Good());
  REQUIRE(pair.receives.Await(1));
  CHECK(SameBytes(pair.device(1).ToHost(got), sent));
}

TEST_CASE("a message keeps two pieces under way, so that one is copied while the other travels") {
  Pair pair;
  Buffer got = pair.device(1).Blank({50'000});
  pair[0].Send(1, {5, 0}, pair.device(0).From(Pattern(50'000, 1)), pair.sends.Good());
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (pair.host0.num_sends < 2 && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  CHECK(pair.host0.num_sends == 2);  // no process receives them yet
  pair[1].Receive({0, {5, 0}, got, "test", pair.receives.Good(), pair.receives.Bad()});
  REQUIRE(pair.receives.Await(1));
  CHECK(pair.sends.Await(1));
  CHECK(pair.host0.num_sends == 10);
  // The other end, when nothing has been sent to it: pieces that are there already are received at
  // once, perhaps before the next one is asked for.
  pair[1].Receive({0, {5, 1}, got, "test", pair.receives.Good(), pair.receives.Bad()});
  CHECK(pair.host1.open == 2);
  pair[0].Send(1, {5, 1}, pair.device(0).From(Pattern(50'000, 2)), pair.sends.Good());
  REQUIRE(pair.receives.Await(1));
  CHECK(pair.host1.max_open == 2);
  CHECK(SameBytes(pair.device(1).ToHost(got), Pattern(50'000, 2)));
}

TEST_CASE("the memory of a send is released before its callback") {
  Pair pair;
  Buffer sent = pair.device(0).From(Pattern(12'000, 1));
  std::promise<long> count;
  pair[1].Receive({0,
                   {5, 0},
                   pair.device(1).Blank({12'000}),
                   "test",
                   pair.receives.Good(),
                   pair.receives.Bad()});
  pair[0].Send(1, {5, 0}, sent, [&] { count.set_value(sent.use_count()); });
  CHECK(count.get_future().get() == 1);
  CHECK(pair.receives.Await(1));
}

TEST_CASE("the last handle to a tensor that is sent may go at once") {
  Pair pair(1, 200us);
  for (std::uint64_t i = 0; i < 20; ++i) {
    pair[1].Receive({0,
                     {5, i},
                     pair.device(1).Blank({9000}),
                     "test",
                     pair.receives.Good(),
                     pair.receives.Bad()});
    pair[0].Send(1, {5, i}, pair.device(0).From(Pattern(9000, i)), {});
  }
  CHECK(pair.receives.Await(20));
  CHECK(pair.machine.fault().empty());  // no release in a callback of a stream
}

TEST_CASE("a receive that fails says so once, and its memory is not written any more") {
  Pair pair;
  pair.network.FailReceivesOf(1, "the connection failed");
  Buffer got = pair.device(1).From(Blank(50'000));
  pair[1].Receive({0, {5, 0}, got, "test", pair.receives.Good(), pair.receives.Bad()});
  REQUIRE(pair.receives.Await(1));
  CHECK(pair.receives.TakeErrors() == std::vector<std::string>{"the connection failed"});
  CHECK(SameBytes(pair.device(1).ToHost(got), Blank(50'000)));
}

TEST_CASE("an abort fails every open receive once, with its cause") {
  Pair pair;
  for (std::uint64_t i = 0; i < 5; ++i)
    pair[1].Receive({0,
                     {5, i},
                     pair.device(1).Blank({50'000}),
                     "test",
                     pair.receives.Good(),
                     pair.receives.Bad()});
  pair[0].Send(1, {5, 2}, pair.device(0).From(Pattern(50'000, 1)), {});
  pair.abort->Raise("stop");
  REQUIRE(pair.receives.Await(5));
  CHECK(pair.receives.count() == 5);
  for (const std::string& error : pair.receives.TakeErrors()) CHECK(error == "stop");
}

TEST_CASE("a device that fails in a send ends the job, in a receive it fails that") {
  Pair pair;
  const Buffer there = pair.device(0).From(Pattern(9000, 1));
  const Buffer got = pair.device(1).Blank({9000});
  SECTION("send") {
    pair.machine.Break(0);
    pair[1].Receive({0, {5, 0}, got, "test", pair.receives.Good(), pair.receives.Bad()});
    pair[0].Send(1, {5, 0}, there, {});
    REQUIRE(pair.receives.Await(1));
    CHECK_THAT(pair.abort->cause(),
               Catch::StartsWith("data plane: sending from device 0 to process 1: ") &&
                   Catch::Contains("cudaErrorIllegalAddress"));
  }
  SECTION("receive") {
    pair.machine.Break(1);
    pair[1].Receive({0, {5, 0}, got, "test", pair.receives.Good(), pair.receives.Bad()});
    pair[0].Send(1, {5, 0}, there, {});
    REQUIRE(pair.receives.Await(1));
    CHECK_THAT(pair.receives.TakeErrors().at(0),
               Catch::StartsWith("test: ") && Catch::Contains("cudaErrorIllegalAddress"));
  }
}

TEST_CASE("a byte that a checked copy changes ends the job in a send, in a receive it fails that") {
  Pair pair(1, 0us, CheckCopies::kYes);
  const Buffer there = pair.device(0).From(Pattern(12'000, 1));
  const Buffer got = pair.device(1).Blank({12'000});
  const std::string edge = "edge vision>language, microbatch 3";
  pair[1].Receive({0, {5, 0}, got, edge, pair.receives.Good(), pair.receives.Bad()});
  // The third piece is of 2000 bytes. It is copied twice: to the host, and then to the device.
  SECTION("send") {
    pair.machine.Spoil({.num_bytes = 2000, .byte = 7});
    pair[0].Send(1, {5, 0}, there, {});
    REQUIRE(pair.receives.Await(1));
    CHECK_THAT(pair.abort->cause(),
               Catch::StartsWith("data plane: sending from device 0 to process 1: bytes [10000, "
                                 "12000) changed on the way from device 0 to the host: expected "));
  }
  SECTION("receive") {
    pair.machine.Spoil({.num_bytes = 2000, .byte = 7, .skipped = 1});
    pair[0].Send(1, {5, 0}, there, {});
    REQUIRE(pair.receives.Await(1));
    CHECK_THAT(pair.receives.TakeErrors().at(0),
               Catch::StartsWith(edge + ": bytes [10000, 12000) changed on the way from the host "
                                        "to device 1: expected checksum "));
  }
  CHECK(pair.machine.fault().empty());
}

TEST_CASE("what a plane does with memory of devices is said in one line") {
  Pair pair;
  CHECK(pair[0].Describe("UCX") == "UCX: device memory through pinned chunks of 5000 bytes");
  const StagedPlane usual(pair.host0, pair.carrier, *pair.staging0, {});
  CHECK(usual.Describe("UCX") == "UCX: device memory through pinned chunks of 4 MiB");
  DeviceStaging staging(CheckCopies::kYes);
  const StagedPlane checked(pair.host0, pair.carrier, staging, {});
  CHECK(checked.Describe("UCX") ==
        "UCX: device memory through pinned chunks of 4 MiB, copies checked");
  const StagedPlane direct(pair.host0, pair.carrier, *pair.staging0, {.reads_device_memory = true});
  CHECK(direct.Describe("UCX") == "UCX reads device memory itself");
}

TEST_CASE("tensors on devices are fetched over UCX, onto a device or to the host") {
  Machine machine;
  DeviceBuffers home(0);
  DeviceBuffers away(1);
  DeviceStaging staging;
  PlaneJobOptions wanted;
  wanted.to_host = MakeToHost(staging, nullptr);
  PlaneJob job(wanted, [&](TensorStore& store, Plane& plane) {
    auto staged = std::make_unique<StagedPlane>(
        plane, plane, staging,
        StagedPlane::Options{plane.reads_device_memory(), std::size_t{1} << 20, nullptr});
    store.Attach(staged.get());
    store.AllocateOnDevices(
        [&](Shape shape, DType dtype, int) { return away.Blank(std::move(shape), dtype); });
    return staged;
  });
  CHECK_FALSE(job[0].reads_device_memory());  // of a UCX without CUDA
  const Buffer bytes = Pattern(5'000'007, 4);
  Buffer there = home.From(bytes);
  SECTION("as a whole") {}
  SECTION("in parts") {
    there =
        ConcatenateRows({home.From(bytes.Rows(0, 1234)), home.From(bytes.Rows(1234, 5'000'007))});
  }
  Buffer handle = job.store(1).Resolve(job.store(0).Refer(there));
  const Buffer here = job.store(1).FetchNow(handle, "test");
  CHECK(here.on_host());
  CHECK(SameBytes(here, bytes));
  const Buffer on_device = job.store(1).FetchNow(handle, "test", 1);
  CHECK(on_device.device() == 1);
  CHECK(SameBytes(away.ToHost(on_device), bytes));
  const Buffer rows = job.store(1).FetchNow(handle.Rows(1000, 2000), "test", 1);
  CHECK(SameBytes(away.ToHost(rows), bytes.Rows(1000, 2000)));
  // And home again, where it is what it was.
  const Buffer back = job.store(0).Resolve(job.store(1).Refer(handle.Rows(1000, 2000)));
  CHECK(back.device() == 0);
  handle = Buffer();
  CHECK_THROWS_WITH(job[0].Send(1, {1, 1}, there.parts().empty() ? there : there.parts()[0], {}),
                    "data plane: send: expected memory of the host, got memory of device 0");
  CHECK(machine.fault().empty());
}

TEST_CASE("tensors on devices leave with their message, to a device or to the host") {
  Machine machine;
  DeviceBuffers home(0);
  DeviceBuffers away(1);
  DeviceStaging staging;
  PlaneJob job({}, [&](TensorStore& store, Plane& plane) {
    auto staged = std::make_unique<StagedPlane>(
        plane, plane, staging,
        StagedPlane::Options{plane.reads_device_memory(), std::size_t{1} << 20, nullptr});
    store.Attach(staged.get(), staged.get());
    store.AllocateOnDevices(
        [&](Shape shape, DType dtype, int) { return away.Blank(std::move(shape), dtype); });
    return staged;
  });
  const Buffer bytes = Pattern(5'000'007, 4);
  const Buffer on_home = home.From(bytes);
  for (const int device : {Buffer::kHost, 1}) {
    for (const Buffer& from : {bytes, on_home}) {
      const Buffer handle = job.store(1).Resolve(job.store(0).Refer(job.store(0).Push(from, 1)));
      REQUIRE_FALSE(job.store(1).Asks(handle));
      const Buffer here = job.store(1).FetchNow(handle, "test", device);
      CHECK(here.device() == device);
      CHECK(SameBytes(device == 1 ? away.ToHost(here) : here, bytes));
    }
  }
  CHECK(machine.fault().empty());
}

TEST_CASE("a pull whose bytes change on the way from their device ends the job with the reason") {
  Machine machine;
  DeviceBuffers home(0);
  DeviceStaging staging(CheckCopies::kYes);
  const auto abort = std::make_shared<AbortSignal>();
  PlaneJobOptions wanted;
  wanted.verify = Verify::kPayload;
  wanted.to_host = MakeToHost(staging, abort);
  PlaneJob job(wanted);
  const Buffer bytes = Pattern(9000, 4);
  const Buffer handle = job.store(1).Resolve(job.store(0).Refer(home.From(bytes)));
  CHECK(SameBytes(job.store(1).FetchNow(handle, "test"), bytes));
  machine.Spoil({.num_bytes = 9000, .byte = 5000});
  CHECK_THROWS_WITH(job.store(1).FetchNow(handle, "test"), Catch::StartsWith("test: "));
  CHECK_THAT(abort->cause(),
             Catch::StartsWith("data plane: answering a pull from device 0: bytes [4096, 8192) "
                               "changed on the way from device 0 to the host: expected checksum "));
}
