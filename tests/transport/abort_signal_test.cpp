#include "transport/abort_signal.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("the first cause is the one that all report") {
  AbortSignal signal;
  CHECK_FALSE(signal.raised());
  CHECK(signal.cause().empty());
  CHECK_NOTHROW(signal.ThrowIfRaised());
  signal.Raise({"rank 3 died", FailureKind::kLost});
  signal.Raise("rank 4 waited for rank 3");
  CHECK(signal.raised());
  CHECK(signal.failure() == Failure("rank 3 died", FailureKind::kLost));
  CHECK(signal.cause() == "rank 3 died");
  CHECK_THROWS_AS(signal.ThrowIfRaised(), Aborted);
  CHECK_THROWS_WITH(signal.ThrowIfRaised(), "rank 3 died");
}

TEST_CASE("each subscriber is called once, a late one at once") {
  AbortSignal signal;
  std::vector<std::string> calls;
  const auto record = [&](const Failure& failure) { calls.push_back(failure.text); };
  const auto early = signal.Subscribe(record);
  signal.Raise("a");
  signal.Raise("b");
  CHECK(calls == std::vector<std::string>{"a"});
  const auto late = signal.Subscribe(record);
  CHECK(calls == std::vector<std::string>{"a", "a"});
}

TEST_CASE("who has unsubscribed is not called") {
  AbortSignal signal;
  int calls = 0;
  signal.Subscribe([&](const Failure&) { ++calls; }).reset();
  signal.Raise("a");
  CHECK(calls == 0);
}

TEST_CASE("a subscription may outlive its signal and end inside its own call") {
  std::shared_ptr<void> subscription;
  auto signal = std::make_unique<AbortSignal>();
  int calls = 0;
  subscription = signal->Subscribe([&](const Failure&) {
    ++calls;
    subscription.reset();
    signal.reset();
  });
  AbortSignal* const raw = signal.get();
  raw->Raise("a");
  CHECK(calls == 1);
  CHECK(subscription == nullptr);
  const auto outliving = AbortSignal().Subscribe([](const Failure&) {});
  CHECK(outliving != nullptr);
}

TEST_CASE("of many threads that raise at once one wins, and subscribers come and go meanwhile") {
  for (int round = 0; round < 50; ++round) {
    AbortSignal signal;
    std::atomic<int> calls = 0;
    const auto subscription = signal.Subscribe([&](const Failure&) { ++calls; });
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&, i] { signal.Raise("cause " + std::to_string(i)); });
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) signal.Subscribe([](const Failure&) {}).reset();
    });
    for (std::thread& thread : threads) thread.join();
    REQUIRE(calls == 1);
    REQUIRE(signal.cause().substr(0, 6) == "cause ");
  }
}
