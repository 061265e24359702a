// Tensors whose bytes leave with the message that names them.
#include <functional>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/transport/plane_job.hpp"
#include "transport/plane_in_front.hpp"

using namespace troupe;
using troupe::testing::Eventually;
using troupe::testing::Pattern;
using troupe::testing::PlaneJob;
using troupe::testing::PlaneJobOptions;
using troupe::testing::SameBytes;

namespace {

/// Counts what is asked for, and can keep a message from leaving.
class CountingPlane final : public PlaneInFront {
 public:
  explicit CountingPlane(Plane& plane) : PlaneInFront(plane, plane) {}
  void Pull(std::uint64_t key, std::int64_t offset, Reception reception) override {
    ++pulls;
    PlaneInFront::Pull(key, offset, std::move(reception));
  }
  void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) override {
    if (!silent) PlaneInFront::Send(to, label, std::move(buffer), std::move(sent));
  }

  std::atomic<int> pulls = 0;
  std::atomic<bool> silent = false;
};

/// Two processes; process 1 fetches what process 0 has.
struct Job {
  explicit Job(PlaneJobOptions wanted = {})
      : all(wanted, [this](TensorStore& store, Plane& plane) {
          auto counting = std::make_unique<CountingPlane>(plane);
          planes.push_back(counting.get());
          store.Attach(counting.get(), counting.get());
          return counting;
        }) {}

  Buffer Sent(const Buffer& buffer) {
    return all.store(1).Resolve(all.store(0).Refer(all.store(0).Push(buffer, 1)));
  }
  Buffer Fetched(const Buffer& handle) { return all.store(1).FetchNow(handle, "edge a>b"); }
  int pulls() const { return planes.at(1)->pulls; }

  std::vector<CountingPlane*> planes;
  PlaneJob all;
};

}  // namespace

TEST_CASE("pushed bytes of every size are there without being asked for") {
  for (const char* tls : {"posix,sysv,cma", "tcp", "proven"}) {
    INFO(tls);
    Job job({.tls = tls, .verify = Verify::kPayload});
    for (const std::int64_t size : {1, 8192, 1 << 20, 20 << 20}) {
      const Buffer bytes = Pattern(size, 3);
      Buffer handle = job.Sent(bytes);
      CHECK_FALSE(handle.local());
      CHECK_FALSE(job.all.store(1).Asks(handle));
      CHECK(SameBytes(job.Fetched(handle), bytes));
      handle = Buffer();
      CHECK(Eventually([&] { return job.all.store(0).num_pinned() == 0; }));
      CHECK(Eventually([&] { return bytes.use_count() == 1; }));
    }
    CHECK(job.pulls() == 0);
  }
}

TEST_CASE("what is fetched a second time, or in part, is asked for") {
  Job job;
  const Buffer bytes = Pattern(4096, 3);
  Buffer handle = job.Sent(bytes);
  CHECK(job.all.store(1).Asks(handle.Rows(0, 100)));
  CHECK(SameBytes(job.Fetched(handle.Rows(100, 200)), bytes.Rows(100, 200)));
  CHECK(job.pulls() == 1);
  CHECK(SameBytes(job.Fetched(handle), bytes));
  CHECK(job.pulls() == 1);
  CHECK(job.all.store(1).Asks(handle));
  CHECK(SameBytes(job.Fetched(handle), bytes));
  CHECK(job.pulls() == 2);
}

TEST_CASE("rows of a buffer are pushed as rows, and a handle comes home as what it was") {
  Job job;
  const Buffer bytes = Pattern(4096, 3);
  Buffer handle = job.Sent(bytes.Rows(1000, 3000));
  CHECK(SameBytes(job.Fetched(handle), bytes.Rows(1000, 3000)));
  const Buffer back = job.all.store(0).Resolve(job.all.store(1).Refer(handle));
  CHECK(back.data() == bytes.data() + 1000);
  CHECK(job.pulls() == 0);
}

TEST_CASE("bytes that are never fetched are received all the same") {
  for (const char* tls : {"posix,sysv,cma", "tcp", "proven"}) {
    INFO(tls);
    Job job({.tls = tls});
    const Buffer bytes = Pattern(20 << 20, 3);
    Buffer handle = job.Sent(bytes);
    handle = Buffer();
    CHECK(Eventually([&] { return bytes.use_count() == 1; }));
    CHECK(Eventually([&] { return job.all[1].stats().messages_received == 1; }));
  }
}

TEST_CASE("what has nowhere to go is not pushed") {
  Job job;
  TensorStore& store = job.all.store(0);
  const Buffer bytes = Pattern(64, 3);
  CHECK(store.Push(bytes, 0).local());
  CHECK(store.Push(bytes.Rows(5, 5), 1).local());
  CHECK_FALSE(store.Push(Buffer(), 1).defined());
  const Buffer elsewhere = job.Sent(bytes);
  CHECK(job.Fetched(elsewhere).local());
  CHECK(job.all.store(1).Push(elsewhere, 0).owner() == elsewhere.owner());
  TensorStore alone(nullptr);
  CHECK(alone.Push(bytes, 1).local());
}

TEST_CASE("a fetch of bytes that never come is ended by an abort, with its cause") {
  Job job;
  job.planes.at(0)->silent = true;
  const Buffer handle = job.Sent(Pattern(1 << 20, 3));
  std::string outcome;
  std::thread waiter([&] {
    try {
      job.Fetched(handle);
    } catch (const Aborted& error) {
      outcome = error.what();
    }
  });
  job.all.abort->Raise("n2 was killed");
  waiter.join();
  CHECK(outcome == "n2 was killed");
}
