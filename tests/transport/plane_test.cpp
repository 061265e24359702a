#include "transport/ucx/plane.hpp"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/transport/plane_job.hpp"

using namespace troupe;
using troupe::testing::Blank;
using troupe::testing::Eventually;
using troupe::testing::Pattern;
using troupe::testing::PlaneJob;
using troupe::testing::PlaneJobOptions;
using troupe::testing::SameBytes;

namespace {

const char* const kTransports[] = {"posix,sysv,cma", "tcp", "proven"};

}  // namespace

TEST_CASE("bytes of every size arrive, posted early or late, checked or not") {
  for (const char* tls : kTransports)
    for (const Verify verify : {Verify::kOff, Verify::kHeader, Verify::kPayload}) {
      INFO(tls << ", verify " << static_cast<int>(verify));
      PlaneJob job({.tls = tls, .verify = verify});
      std::uint64_t sequence = 0;
      for (const std::int64_t size : {0, 1, 8192, 8257, 1 << 20, 5 << 20})
        for (const bool early : {true, false}) {
          const Label label{1, ++sequence};
          const Buffer source = Pattern(size, sequence);
          const Buffer destination = Blank(size);
          const auto receive = [&] {
            job[1].Receive(
                {0, label, destination, "test", job.receives.Good(), job.receives.Bad()});
          };
          if (early) receive();
          job[0].Send(1, label, source, job.sends.Good());
          if (!early) receive();
          REQUIRE(job.receives.Await(1));
          REQUIRE(job.sends.Await(1));
          CHECK(SameBytes(source, destination));
        }
      CHECK(job.receives.TakeErrors().empty());
      CHECK(job[0].stats().bytes_sent == job[1].stats().bytes_received);
      CHECK(job[1].stats().messages_received == sequence);
      CHECK(job[1].stats().strangers == 0);
      CHECK(job.failures.count() == 0);
    }
}

TEST_CASE("transports are reported as the console shows them") {
  const auto transports = [](const PlaneJobOptions& options) {
    return DescribeTransports(PlaneJob(options)[0], {"n0", "n1", "n2"});
  };
  CHECK(transports({.tls = "posix,sysv,cma"}) == "sysv + cma");
  CHECK(transports({.processes = 3, .tls = "tcp"}) == "tcp/lo");
  CHECK(transports({.processes = 3, .tls = "proven"}) == "proven tcp");
  CHECK(transports({.processes = 1}).empty());
}

TEST_CASE("many labels in any order, from two threads on each side, get their own bytes") {
  constexpr int kLabels = 200;  // per thread and direction
  for (const char* tls : kTransports) {
    INFO(tls);
    PlaneJob job({.tls = tls});
    const auto size_of = [](int label) { return std::int64_t{label} * 131 % 20011; };
    std::vector<std::vector<Buffer>> destinations(4);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        const int self = thread / 2;
        const auto stream = static_cast<std::uint64_t>(thread % 2);
        auto& mine = destinations[static_cast<std::size_t>(thread)];
        mine.resize(kLabels);
        std::vector<int> steps(2 * kLabels);
        for (int i = 0; i < 2 * kLabels; ++i) steps[static_cast<std::size_t>(i)] = i;
        std::shuffle(steps.begin(), steps.end(), std::mt19937(static_cast<unsigned>(thread)));
        for (const int step : steps) {
          const int label = step / 2;
          const auto sequence = static_cast<std::uint64_t>(label);
          Plane& plane = job[static_cast<std::size_t>(self)];
          if (step % 2 == 0) {
            const auto seed = (static_cast<std::uint64_t>(self) * 2 + stream) * 1000 + sequence;
            plane.Send(1 - self, {stream, sequence}, Pattern(size_of(label), seed),
                       job.sends.Good());
          } else {
            Buffer& destination = mine[static_cast<std::size_t>(label)];
            destination = Blank(size_of(label));
            plane.Receive({1 - self,
                           {stream, sequence},
                           destination,
                           "test",
                           job.receives.Good(),
                           job.receives.Bad()});
          }
        }
      });
    for (std::thread& thread : threads) thread.join();
    REQUIRE(job.receives.Await(4 * kLabels));
    REQUIRE(job.sends.Await(4 * kLabels));
    CHECK(job.receives.TakeErrors().empty());
    int wrong = 0;
    for (std::uint64_t thread = 0; thread < 4; ++thread)
      for (int label = 0; label < kLabels; ++label) {
        const std::uint64_t sender = 1 - thread / 2;
        const std::uint64_t seed =
            (sender * 2 + thread % 2) * 1000 + static_cast<std::uint64_t>(label);
        if (!SameBytes(destinations[thread][static_cast<std::size_t>(label)],
                       Pattern(size_of(label), seed)))
          ++wrong;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("tensors are fetched from where they are, views included, and released when let go of") {
  for (const char* tls : kTransports)
    for (const Verify verify : {Verify::kHeader, Verify::kPayload}) {
      INFO(tls);
      PlaneJob job({.processes = 3, .tls = tls, .verify = verify});
      constexpr std::int64_t kWidth = 4000000;  // all of it comes in several slices
      const Buffer flat = Pattern(6 * kWidth, 5);
      const Buffer matrix = Buffer::Wrap(flat.owner(), flat.data(), {6, kWidth}, DType::kUInt8);
      Buffer handle = job.store(1).Resolve(job.store(0).Refer(matrix));
      Buffer rows = job.store(2).Resolve(job.store(1).Refer(handle.Rows(2, 5)));
      CHECK(SameBytes(job.store(1).FetchNow(handle, "whole"), matrix));
      handle = Buffer();
      CHECK(SameBytes(job.store(2).FetchNow(rows, "rows"), matrix.Rows(2, 5)));
      CHECK(SameBytes(job.store(2).FetchNow(rows.Rows(1, 2), "row"), matrix.Rows(3, 4)));
      // Home again: the buffer itself.
      const Buffer back = job.store(0).Resolve(job.store(2).Refer(rows));
      CHECK(back.data() == matrix.Rows(2, 5).data());
      CHECK(job.store(0).num_pinned() == 1);
      rows = Buffer();
      CHECK(Eventually([&] { return job.store(0).num_pinned() == 0; }));
      CHECK(job[2].stats().fetches_in_flight == 0);
      CHECK(job.failures.count() == 0);
    }
}

TEST_CASE("a pull of what is not there is refused, with the name of who was asked") {
  for (const char* tls : kTransports) {
    INFO(tls);
    PlaneJob job({.tls = tls});
    const TensorReference reference = job.store(0).Refer(Pattern(100, 1));
    job[1].Pull(77, 0, {0, {}, Blank(4), "edge a>b", job.receives.Good(), job.receives.Bad()});
    job[1].Pull(reference.key, 98,
                {0, {}, Blank(4), "edge b>c", job.receives.Good(), job.receives.Bad()});
    REQUIRE(job.receives.Await(2));
    const std::vector<std::string> errors = job.receives.TakeErrors();
    REQUIRE(errors.size() == 2);
    CHECK_THAT(errors[0],
               Catch::Contains("edge a>b: n0 does not have 4 bytes at byte 0 of tensor 77"));
    CHECK_THAT(errors[1], Catch::Contains("edge b>c: n0 does not have 4 bytes at byte 98"));
    CHECK(job[1].stats().fetches_in_flight == 0);
    job.store(0).Resolve(reference);
  }
}

TEST_CASE("a message of another length fails the receive, and nothing is written behind it") {
  for (const char* tls : {"posix,sysv,cma", "proven"})
    for (const Verify verify : {Verify::kOff, Verify::kHeader}) {
      INFO(tls);
      PlaneJob job({.tls = tls, .verify = verify});
      for (const std::int64_t size : {99, 101, 100000}) {
        const Buffer whole = Blank(200);
        const Buffer destination = Buffer::Wrap(whole.owner(), whole.data(), {100}, DType::kUInt8);
        const Label label{3, static_cast<std::uint64_t>(size)};
        job[1].Receive(
            {0, label, destination, "edge a>b", job.receives.Good(), job.receives.Bad()});
        job[0].Send(1, label, Pattern(size, 1), nullptr);
        REQUIRE(job.receives.Await(1));
        const auto errors = job.receives.TakeErrors();
        REQUIRE(errors.size() == 1);
        CHECK_THAT(errors[0],
                   Catch::Contains("edge a>b: the slice from n0 failed its check (header)") &&
                       Catch::Contains("expected 100 bytes"));
        CHECK(SameBytes(whole.Rows(100, 200), Blank(100)));
      }
    }
}

TEST_CASE("a label that is open is refused, and the first receive is unharmed") {
  for (const char* tls : kTransports) {
    INFO(tls);
    PlaneJob job({.tls = tls});
    const Buffer destination = Blank(8);
    job[1].Receive({0, {1, 1}, destination, "first", job.receives.Good(), job.receives.Bad()});
    job[1].Receive({0, {1, 1}, Blank(8), "second", job.receives.Good(), job.receives.Bad()});
    REQUIRE(job.receives.Await(1));
    CHECK_THAT(job.receives.TakeErrors().at(0),
               Catch::Contains("second") && Catch::Contains("first"));
    job[0].Send(1, {1, 1}, Pattern(8, 4), nullptr);
    REQUIRE(job.receives.Await(1));
    CHECK(SameBytes(destination, Pattern(8, 4)));
  }
}

TEST_CASE("calls that cannot mean anything are refused on the spot") {
  PlaneJob job;
  const auto send = [&](ProcessId to, Label label, const Buffer& buffer) {
    job[0].Send(to, label, buffer, nullptr);
  };
  CHECK_THROWS_AS(send(0, {1, 1}, Blank(1)), std::invalid_argument);
  CHECK_THROWS_AS(send(2, {1, 1}, Blank(1)), std::invalid_argument);
  CHECK_THROWS_AS(send(1, {1, 1}, Buffer()), std::invalid_argument);
  CHECK_THROWS_AS(send(1, {kPullStream, 1}, Blank(1)), std::invalid_argument);
  UcxOptions options = troupe::testing::UcxOptionsOf(0, 2, "tcp");
  options.port_range = "7600-7500";
  CHECK_THROWS_WITH(UcxPlane(options), Catch::Contains("port range"));
  options = troupe::testing::UcxOptionsOf(0, 2, "nonsense");
  CHECK_THROWS_AS(UcxPlane(options), std::runtime_error);
  UcxPlane unconnected(troupe::testing::UcxOptionsOf(0, 2, "tcp"));
  CHECK_THROWS_AS(unconnected.Send(1, {1, 1}, Blank(1), nullptr), std::logic_error);
}

TEST_CASE("a process with another secret gets nothing through, and is counted") {
  PlaneJob job({.processes = 3, .odd_secret = 2});
  const TensorReference reference = job.store(0).Refer(Pattern(100, 1));
  const Buffer destination = Blank(8);
  job[0].Receive({2, {1, 1}, destination, "from n2", job.receives.Good(), job.receives.Bad()});
  job[2].Send(0, {1, 1}, Pattern(8, 4), job.sends.Good());
  job[2].Pull(reference.key, 0,
              {0, {}, Blank(100), "stolen", job.receives.Good(), job.receives.Bad()});
  job[2].Return(0, reference.key, reference.weight);
  // The hello, the answer to n0's, the pull and the return.
  CHECK(Eventually([&] { return job[0].stats().strangers == 4; }));
  CHECK(job.receives.count() == 0);
  CHECK(SameBytes(destination, Blank(8)));
  CHECK(job.store(0).num_pinned() == 1);

  // The others do not mind.
  job[0].Receive({1, {1, 1}, destination, "from n1", job.receives.Good(), job.receives.Bad()});
  job[1].Send(0, {1, 1}, Pattern(8, 5), job.sends.Good());
  REQUIRE(job.receives.Await(1));
  CHECK(SameBytes(destination, Pattern(8, 5)));
}

TEST_CASE("an abort fails what is open and what comes later, and ends fetches") {
  for (const char* tls : kTransports) {
    INFO(tls);
    PlaneJob job({.tls = tls});
    const Buffer handle = job.store(1).Resolve(job.store(0).Refer(Pattern(100, 1)));
    const auto receive = [&](std::uint64_t sequence) {
      job[1].Receive({0, {1, sequence}, Blank(8), "test", job.receives.Good(), job.receives.Bad()});
    };
    receive(1);
    receive(2);
    job.abort->Raise("n7 was killed");
    REQUIRE(job.receives.Await(2));
    receive(3);
    REQUIRE(job.receives.Await(1));
    CHECK(job.receives.TakeErrors() == std::vector<std::string>(3, "n7 was killed"));
    CHECK_THROWS_AS(job.store(1).FetchNow(handle, "test"), Aborted);
    job[0].Send(1, {1, 1}, Pattern(8, 4), job.sends.Good());
    CHECK(job.sends.count() == 0);
  }
}

TEST_CASE("closing fails what is open, and the plane refuses politely from then on") {
  for (const char* tls : kTransports) {
    INFO(tls);
    PlaneJob job({.tls = tls});
    const auto receive = [&] {
      job[1].Receive({0, {1, 1}, Blank(8), "edge a>b", job.receives.Good(), job.receives.Bad()});
    };
    receive();
    job[0].Leave();
    job[1].Leave();
    job[1].Close();
    REQUIRE(job.receives.Await(1));
    receive();
    REQUIRE(job.receives.Await(1));
    for (const std::string& error : job.receives.TakeErrors())
      CHECK_THAT(error, Catch::Contains("edge a>b: the data plane of this process is closed"));
    CHECK(job.failures.count() == 0);
  }
}

TEST_CASE("a large send without a receive does not keep a plane from closing") {
  for (const char* tls : kTransports) {
    INFO(tls);
    const auto begin = std::chrono::steady_clock::now();
    {
      PlaneJob job({.tls = tls});
      job[0].Send(1, {1, 1}, Pattern(1 << 20, 4), job.sends.Good());
      job[1].Receive({0, {1, 2}, Blank(8), "test", job.receives.Good(), job.receives.Bad()});
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
  }
}

TEST_CASE("planes that close while UCX connects them survive it") {
  for (int i = 0; i < 30; ++i) {
    PlaneJob job({.tls = "tcp", .connected = false});
    job[0].Send(1, {1, 1}, Pattern(1 << 20, 4), job.sends.Good());
  }
}

TEST_CASE("a process that closes without a goodbye is reported once, and its receives fail") {
  // Shared memory only reports processes that are gone.
  for (const char* tls : {"tcp", "proven"}) {
    INFO(tls);
    PlaneJob job({.tls = tls});
    // So that both sides are connected when it happens.
    job[1].Receive({0, {1, 1}, Blank(8), "test", job.receives.Good(), job.receives.Bad()});
    job[0].Send(1, {1, 1}, Pattern(8, 4), job.sends.Good());
    REQUIRE(job.receives.Await(1));
    job[1].Receive({0, {1, 2}, Blank(8), "edge a>b", job.receives.Good(), job.receives.Bad()});
    job[0].Close();
    REQUIRE(job.failures.Await(1));
    REQUIRE(job.receives.Await(1));
    CHECK_THAT(job.failures.TakeErrors().at(0), Catch::Contains("n1 lost n0: its data connection"));
    CHECK_THAT(job.receives.TakeErrors().at(0), Catch::Contains("edge a>b: n0 is gone: "));
    job[1].Receive({0, {1, 3}, Blank(8), "later", job.receives.Good(), job.receives.Bad()});
    REQUIRE(job.receives.Await(1));
    CHECK_THAT(job.receives.TakeErrors().at(0), Catch::Contains("later: n0 is gone: "));
    CHECK(job.failures.count() == 1);
  }
}

TEST_CASE("messages that are not received yet block no others, and all arrive in the end") {
  constexpr std::uint64_t kCount = 400;
  for (const char* tls : kTransports) {
    INFO(tls);
    PlaneJob job({.tls = tls});
    // Small ones that arrive early, more than may be kept, and some that must wait for their place.
    const auto size_of = [](std::uint64_t i) { return i % 50 == 7 ? 300000 : 60000; };
    for (std::uint64_t i = 0; i < kCount; ++i)
      job[0].Send(1, {1, i}, Pattern(size_of(i), i), job.sends.Good());
    for (const std::int64_t size : {8, 1 << 20}) {
      const Label label{2, static_cast<std::uint64_t>(size)};
      const Buffer destination = Blank(size);
      job[0].Send(1, label, Pattern(size, 5), nullptr);
      job[1].Receive({0, label, destination, "test", job.receives.Good(), job.receives.Bad()});
      REQUIRE(job.receives.Await(1));
      CHECK(SameBytes(destination, Pattern(size, 5)));
    }
    std::vector<Buffer> destinations;
    for (std::uint64_t i = 0; i < kCount; ++i) destinations.push_back(Blank(size_of(i)));
    for (std::uint64_t i = kCount; i-- > 0;)  // last in, first out
      job[1].Receive({0, {1, i}, destinations[i], "test", job.receives.Good(), job.receives.Bad()});
    REQUIRE(job.receives.Await(kCount));
    REQUIRE(job.sends.Await(kCount));
    CHECK(job.receives.TakeErrors().empty());
    int wrong = 0;
    for (std::uint64_t i = 0; i < kCount; ++i)
      if (!SameBytes(destinations[i], Pattern(size_of(i), i))) ++wrong;
    CHECK(wrong == 0);
    CHECK(job.failures.count() == 0);
  }
}
