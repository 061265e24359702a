// How NCCL's communicators end: errors, aborts and members that do not come, on an emulated NCCL.
#include <atomic>

#include <catch2/catch.hpp>

#include "tests/transport/nccl/nccl_job.hpp"

using namespace troupe;
using namespace troupe::testing;
using emulated::Machine;
using emulated::NcclNetwork;
using namespace std::chrono_literals;

TEST_CASE("an error that NCCL finds ends the job in its words, and what hangs goes on") {
  NcclJob job(3);
  std::atomic<int> stuck = 0;
  const auto outcomes = job.crew.Run([&](DeviceRank& it) {
    const auto there = it.pool.Allocate(64, it.stream);
    it.group.AllReduce(there.get(), 16, DType::kFloat32, ReduceOp::kSum);
    it.stream.Synchronize();
    if (it.rank == 1) {
      while (stuck < 2) std::this_thread::yield();
      job.network.Fail(1, ncclRemoteError, "connection closed by rank 7");
      while (!job.crew.abort->raised()) std::this_thread::yield();
      job.crew.abort->ThrowIfRaised();
    }
    // Rank 1 never comes: on the device this waits for ever.
    it.group.AllReduce(there.get(), 16, DType::kFloat32, ReduceOp::kSum);
    ++stuck;
    it.stream.Synchronize();
    it.group.Barrier();
  });
  const std::string cause =
      "tensor group of vision: rank 1: NCCL: remote process exited or there was a network error "
      "(connection closed by rank 7)";
  CHECK(job.crew.abort->cause() == cause);
  CHECK(outcomes == All(3, "aborted: " + cause));
  CHECK(job.network.counts() == "3 made, 3 aborted, 0 destroyed");
  CHECK(job.machine.open() == Machine::kNothing);
}

TEST_CASE("an abort by another thread ends a call that hangs in NCCL") {
  NcclJob job(2);
  const auto outcomes = job.crew.Run([&](DeviceRank& it) {
    const auto there = it.pool.Allocate(64, it.stream);
    if (it.rank == 0) {
      it.group.AllReduce(there.get(), 16, DType::kFloat32, ReduceOp::kSum);
      job.crew.abort->Raise("process 3 is gone");
      it.stream.Synchronize();
    }
    while (!job.crew.abort->raised()) std::this_thread::yield();
    it.group.Barrier();
    // Before the watch has come by, it is only queued.
    while (true) it.group.Barrier();
  });
  CHECK(outcomes == All(2, "aborted: process 3 is gone"));
  CHECK(job.network.counts() == "2 made, 2 aborted, 0 destroyed");
}

TEST_CASE("an abort ends an exchange that waits for who sends or receives nothing") {
  NcclJob job(2);
  const int late = GENERATE(0, 1);  // the other one hangs
  std::atomic<bool> queued = false;
  const auto outcomes = job.crew.Run([&](DeviceRank& it) {
    const auto there = it.pool.Allocate(128, it.stream);
    auto* const bytes = static_cast<std::byte*>(there.get());
    // Rank 0 sends 64 bytes, rank 1 receives them.
    const std::vector<std::size_t> sent = {0, it.rank == 0 ? 64U : 0U};
    const std::vector<std::size_t> received = {it.rank == 1 ? 64U : 0U, 0};
    if (it.rank == late) {
      while (!queued) std::this_thread::yield();
      job.crew.abort->Raise("process 3 is gone");
    } else {
      it.group.AllToAll(bytes, sent, bytes + 64, received);
      queued = true;
    }
    it.stream.Synchronize();
    while (!job.crew.abort->raised()) std::this_thread::yield();
    job.crew.abort->ThrowIfRaised();
  });
  CHECK(outcomes == All(2, "aborted: process 3 is gone"));
  CHECK(job.network.counts() == "2 made, 2 aborted, 0 destroyed");
  CHECK(job.machine.open() == Machine::kNothing);
}

TEST_CASE("a member that never comes is named when patience ends") {
  NcclJob job(3);
  job.crew.patience = 200ms;
  job.crew.stays_away = [](int rank) { return rank == 2; };
  const auto outcomes = job.crew.Run([](DeviceRank&) {});
  const std::string cause =
      "tensor group of vision: expected all its members within 200 ms, no sign of rank 2";
  CHECK(outcomes == std::vector<std::string>{"aborted: " + cause, "aborted: " + cause, "ok"});
}

TEST_CASE("members that have come and are never connected are given up") {
  NcclJob job(3, 0us, {.stalled = 1});
  job.crew.patience = 200ms;
  const auto outcomes = job.crew.Run([](DeviceRank&) {});
  CHECK(outcomes == All(3,
                        "aborted: tensor group of vision: expected all its members within 200 ms, "
                        "all have arrived, and NCCL is still connecting"));
  CHECK(job.network.counts() == "3 made, 3 aborted, 0 destroyed");
}

TEST_CASE("a member that cannot connect is named on all members, in NCCL's words") {
  NcclJob job(3, 0us, {.refused = 1});
  const auto outcomes = job.crew.Run([](DeviceRank&) {});
  const std::string cause =
      "tensor group of vision: rank 1: NCCL: connecting: unhandled system error";
  CHECK(job.crew.abort->cause() == cause);
  for (const std::string& outcome : outcomes) CHECK_THAT(outcome, Catch::EndsWith(cause));
  CHECK(job.network.counts() == "2 made, 2 aborted, 0 destroyed");
}

TEST_CASE("illegal arguments of one member end the job") {
  NcclJob job(2);
  const auto outcomes = job.crew.Run([&](DeviceRank& it) {
    const auto there = it.pool.Allocate(64, it.stream);
    if (it.rank == 1) it.group.Broadcast(there.get(), 64, 2);
    for (;;) it.group.Barrier();
  });
  const std::string cause =
      "tensor group of vision: rank 1: broadcast: expected a root in [0, 2), got 2";
  CHECK(outcomes == std::vector<std::string>{"aborted: " + cause, "invalid argument: " + cause});
}

TEST_CASE("all groups of a device are aborted at once: one may wait behind another") {
  Machine machine({.num_devices = 2});
  NcclNetwork network;
  const auto abort = std::make_shared<AbortSignal>();
  Nccl nccl(abort);
  std::atomic<bool> hangs = false;
  const auto outcomes = InTwoGroups(nccl, abort, [&](const RankOfTwoGroups& it) {
    if (it.rank == 0) {
      it.second.Barrier();  // the other never comes
      std::this_thread::sleep_for(50ms);
      hangs = true;
    }
    while (!hangs) std::this_thread::yield();
    if (it.rank == 1) abort->Raise("process 3 is gone");
    it.stream.Synchronize();
    while (network.counts() != "4 made, 4 aborted, 0 destroyed") std::this_thread::yield();
    abort->ThrowIfRaised();
  });
  CHECK(outcomes == All(2, "aborted: process 3 is gone"));
  CHECK(machine.fault().empty());
}
