#include "transport/tensor_store.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

using namespace troupe;

namespace {

/// Carries between stores of one process: a pull is a copy, or waits until it is let go.
class FakeCarrier : public TensorCarrier {
 public:
  FakeCarrier(ProcessId self, std::vector<TensorStore*>* stores) : self_(self), stores_(stores) {}

  ProcessId self() const override { return self_; }
  void Pull(std::uint64_t key, std::int64_t offset, Reception it) override {
    if (!error.empty()) return it.failed(it.what + ": " + error);
    if (silent) {
      kept.push_back([it] { it.failed("too late"); });
      return;
    }
    const auto num_bytes = static_cast<std::int64_t>(it.destination.num_bytes());
    const Buffer bytes =
        stores_->at(static_cast<std::size_t>(it.from))->Pinned(key, offset, num_bytes);
    std::memcpy(it.destination.data(), bytes.data(), bytes.num_bytes());
    it.received();
  }
  void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) override {
    ++num_returns;
    stores_->at(static_cast<std::size_t>(home))->TakeBack(key, weight);
  }

  std::string error;
  bool silent = false;
  int num_returns = 0;
  std::vector<std::function<void()>> kept;

 private:
  const ProcessId self_;
  std::vector<TensorStore*>* stores_;
};

/// Three processes in one.
struct Job {
  Job() {
    for (std::size_t i = 0; i < stores.size(); ++i) {
      all.push_back(&stores[i]);
      stores[i].Attach(&carriers[i]);
    }
  }
  TensorStore& operator[](std::size_t process) { return stores[process]; }

  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
  std::vector<TensorStore*> all;
  std::array<FakeCarrier, 3> carriers{FakeCarrier(0, &all), FakeCarrier(1, &all),
                                      FakeCarrier(2, &all)};
  std::array<TensorStore, 3> stores{TensorStore(abort), TensorStore(abort), TensorStore(abort)};
};

Buffer Numbers(std::int64_t rows, std::int64_t width) {
  Buffer buffer = Buffer::Allocate({rows, width}, DType::kInt32);
  std::iota(buffer.as<int>(), buffer.as<int>() + rows * width, 0);
  return buffer;
}

}  // namespace

TEST_CASE("a tensor is a handle elsewhere, and its bytes come when they are fetched") {
  Job job;
  const Buffer buffer = Numbers(4, 3);
  Buffer handle = job[1].Resolve(job[0].Refer(buffer));
  CHECK(handle.defined());
  CHECK_FALSE(handle.local());
  CHECK(handle.shape() == Shape{4, 3});
  CHECK(handle.dtype() == DType::kInt32);
  CHECK(job[0].num_pinned() == 1);

  const Buffer here = job[1].FetchNow(handle, "test");
  CHECK(here.local());
  CHECK(std::memcmp(here.data(), buffer.data(), buffer.num_bytes()) == 0);
  handle = Buffer();
  CHECK(job[0].num_pinned() == 0);
  CHECK(buffer.use_count() == 1);
}

TEST_CASE("a view of a handle fetches its own rows and keeps the allocation pinned") {
  Job job;
  Buffer handle = job[1].Resolve(job[0].Refer(Numbers(4, 3)));
  Buffer rows = handle.Rows(1, 4).Rows(1, 2);
  handle = Buffer();
  CHECK(job[0].num_pinned() == 1);
  CHECK(job[1].FetchNow(rows, "test").as<int>()[0] == 6);
  rows = Buffer();
  CHECK(job[0].num_pinned() == 0);
  CHECK(job.carriers[1].num_returns == 1);
}

TEST_CASE("a handle that comes home is the buffer it was made of") {
  Job job;
  const Buffer buffer = Numbers(4, 3);
  Buffer handle = job[1].Resolve(job[0].Refer(buffer));
  const Buffer back = job[0].Resolve(job[1].Refer(handle.Rows(2, 4)));
  CHECK(back.local());
  CHECK(back.data() == buffer.data() + 2 * buffer.row_bytes());
  CHECK(back.shape() == Shape{2, 3});
  CHECK(job[0].num_pinned() == 1);
  handle = Buffer();
  CHECK(job[0].num_pinned() == 0);
}

TEST_CASE("a reference is passed on without its home, which lets go when all weight is back") {
  Job job;
  Buffer first = job[1].Resolve(job[0].Refer(Numbers(4, 3)));
  Buffer second = job[2].Resolve(job[1].Refer(first.Rows(3, 4)));
  Buffer third = job[1].Resolve(job[2].Refer(second));
  first = Buffer();
  second = Buffer();
  CHECK(job[0].num_pinned() == 1);
  CHECK(job[1].FetchNow(third, "test").as<int>()[0] == 9);
  third = Buffer();
  CHECK(job[0].num_pinned() == 0);
}

TEST_CASE("a handle passed on from many threads loses no weight") {
  Job job;
  Buffer handle = job[1].Resolve(job[0].Refer(Numbers(4, 3)));
  std::vector<std::vector<TensorReference>> given(4);
  std::vector<std::thread> threads;
  for (auto& mine : given)
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) mine.push_back(job[1].Refer(handle));
    });
  for (std::thread& thread : threads) thread.join();
  handle = Buffer();
  for (const auto& mine : given)
    for (const TensorReference& reference : mine) {
      CHECK(job[0].num_pinned() == 1);
      job[2].Resolve(reference);
    }
  CHECK(job[0].num_pinned() == 0);
}

TEST_CASE("a handle keeps weight for itself and says when it has none to give") {
  Job job;
  Buffer handle = job[1].Resolve(job[0].Refer(Numbers(1, 1)));
  std::vector<TensorReference> given;
  for (int i = 0; i < 48; ++i) given.push_back(job[1].Refer(handle));
  CHECK_THROWS_WITH(job[1].Refer(handle), Catch::Contains("tensor 1 of process 0") &&
                                              Catch::Contains("passed on too often"));
  for (const TensorReference& reference : given) job[2].Resolve(reference);
  CHECK(job[0].num_pinned() == 1);
  handle = Buffer();
  CHECK(job[0].num_pinned() == 0);
}

TEST_CASE("nothing is pinned for tensors without bytes and for no tensor") {
  Job job;
  const Buffer empty = job[1].Resolve(job[0].Refer(Numbers(0, 3)));
  CHECK(empty.local());
  CHECK(empty.defined());
  CHECK(empty.shape() == Shape{0, 3});
  CHECK(job[0].Refer(Buffer()).home == -1);
  CHECK_FALSE(job[1].Resolve(job[0].Refer(Buffer())).defined());
  CHECK(job[0].num_pinned() == 0);

  const Buffer handle = job[1].Resolve(job[0].Refer(Numbers(4, 3)));
  CHECK(job[1].FetchNow(handle.Rows(2, 2), "test").shape() == Shape{0, 3});
  CHECK(job[2].Resolve(job[1].Refer(handle.Rows(2, 2))).local());
}

TEST_CASE("a reference that says impossible things is refused") {
  Job job;
  const TensorReference good = job[0].Refer(Numbers(4, 3));
  const auto refused = [&](std::size_t process, auto change) {
    TensorReference reference = good;
    change(reference);
    CHECK_THROWS_AS(job[process].Resolve(reference), std::invalid_argument);
  };
  refused(1, [](TensorReference& it) { it.home = -2; });
  refused(1, [](TensorReference& it) { it.weight = 0; });
  refused(1, [](TensorReference& it) { it.weight = ~std::uint64_t{0}; });
  refused(1, [](TensorReference& it) { it.offset = -4; });
  refused(1, [](TensorReference& it) { it.offset = 2; });
  refused(1, [](TensorReference& it) { it.shape = {-1}; });
  refused(1, [](TensorReference& it) { it.shape = {std::int64_t{1} << 62, 8}; });
  refused(1, [](TensorReference& it) { it.dtype = static_cast<DType>(9); });
  refused(0, [](TensorReference& it) { it.key = 77; });
  refused(0, [](TensorReference& it) { it.offset = 4; });
  refused(0, [](TensorReference& it) { it.shape = {13}; });
  CHECK(job[0].num_pinned() == 1);
  CHECK(job[0].Resolve(good).local());
  CHECK(job[0].num_pinned() == 0);

  TensorStore alone(nullptr);
  TensorReference foreign = good;
  foreign.home = 1;
  CHECK_THROWS_WITH(alone.Resolve(foreign), Catch::Contains("this is the only process"));
  CHECK(alone.Resolve(alone.Refer(Numbers(1, 1))).local());
}

TEST_CASE("an error names the tensor that is not pinned") {
  Job job;
  const TensorReference reference = job[0].Refer(Numbers(4, 3));
  CHECK(job[0].Pinned(reference.key, 8, 40).num_bytes() == 40);
  CHECK_THROWS_WITH(job[0].Pinned(9, 0, 1), Catch::Contains("tensor 9"));
  CHECK_THROWS_WITH(job[0].Pinned(reference.key, 8, 41), Catch::Contains("its 48 bytes"));
  CHECK_THROWS_AS(job[0].Pinned(reference.key, -1, 1), std::out_of_range);
  CHECK_THROWS_AS(job[0].TakeBack(reference.key, reference.weight + 1), std::out_of_range);
  CHECK_THROWS_AS(job[0].TakeBack(9, 1), std::out_of_range);
  CHECK(job[0].num_pinned() == 1);
}

TEST_CASE("a fetch that fails says why, and one that waits is ended by an abort") {
  Job job;
  const Buffer handle = job[1].Resolve(job[0].Refer(Numbers(4, 3)));
  job.carriers[1].error = "n0 refused";
  CHECK_THROWS_WITH(job[1].FetchNow(handle, "edge a>b"), "edge a>b: n0 refused");

  job.carriers[1].error.clear();
  job.carriers[1].silent = true;
  std::string outcome;
  std::thread waiter([&] {
    try {
      job[1].FetchNow(handle, "test");
    } catch (const Aborted& error) {
      outcome = error.what();
    }
  });
  job.abort->Raise("n2 was killed");
  waiter.join();
  CHECK(outcome == "n2 was killed");
  for (const auto& late : job.carriers[1].kept) late();
}

TEST_CASE("after the job has ended weights go nowhere and fetches fail") {
  Job job;
  Buffer handle = job[1].Resolve(job[0].Refer(Numbers(4, 3)));
  job[1].Detach();
  CHECK_THROWS_WITH(job[1].FetchNow(handle, "edge a>b"), Catch::Contains("the job has ended"));
  handle = Buffer();
  CHECK(job.carriers[1].num_returns == 0);
  CHECK(job[0].num_pinned() == 1);
}

namespace {

/// Memory of the host that says that it is a device's.
Buffer OnDevice(const Buffer& buffer, int device) {
  return Buffer::Wrap(buffer.owner(), buffer.data(), buffer.shape(), buffer.dtype(), device);
}

}  // namespace

TEST_CASE("a tensor is fetched to where it is wanted, and is at home where it was") {
  Job job;
  const Buffer at_home = OnDevice(Numbers(4, 3), 2);
  Buffer handle = job[1].Resolve(job[0].Refer(at_home));
  job[1].AllocateOnDevices([](Shape shape, DType dtype, int device) {
    return OnDevice(Buffer::Allocate(std::move(shape), dtype), device);
  });
  const Buffer rows = job[1].FetchNow(handle.Rows(1, 3), "test", 5);
  CHECK(rows.device() == 5);
  CHECK(rows.shape() == Shape{2, 3});
  CHECK(rows.as<int>()[0] == 3);
  CHECK(job[1].FetchNow(handle, "test").on_host());
  CHECK(job[1].FetchNow(at_home, "test", 5).device() == 2);  // it is local
  const Buffer back = job[0].Resolve(job[1].Refer(handle.Rows(2, 4)));
  CHECK(back.device() == 2);
  CHECK(back.data() == at_home.data() + 2 * at_home.row_bytes());
}

TEST_CASE("a device without memory for a tensor is a failure in its words") {
  Job job;
  const Buffer handle = job[1].Resolve(job[0].Refer(Numbers(4, 3)));
  CHECK_THROWS_AS(job[1].FetchNow(handle, "test", 0), std::logic_error);  // no AllocateOnDevices
  job[1].AllocateOnDevices(
      [](const Shape&, DType, int) -> Buffer { throw std::runtime_error("out of memory"); });
  CHECK_THROWS_WITH(job[1].FetchNow(handle, "edge a>b", 0), "edge a>b: out of memory");
}

TEST_CASE("a tensor in parts comes home in parts, by whole rows") {
  Job job;
  const Buffer numbers = Numbers(6, 3);
  const Buffer other = Numbers(2, 3);
  const Buffer parts = ConcatenateRows({OnDevice(numbers, 1), OnDevice(other, 1)});
  REQUIRE(parts.parts().size() == 2);
  const Buffer handle = job[1].Resolve(job[0].Refer(parts));
  const TensorReference reference = job[1].Refer(handle.Rows(4, 8));
  TensorReference wrong = reference;
  wrong.offset += 4;
  wrong.weight = 1;
  CHECK_THROWS_WITH(job[0].Resolve(wrong), Catch::Contains("expected"));
  const Buffer back = job[0].Resolve(reference);
  REQUIRE(back.parts().size() == 2);
  CHECK(back.parts()[0].data() == numbers.data() + 4 * numbers.row_bytes());
  CHECK(back.parts()[1].data() == other.data());
  const Buffer bytes = job[0].Pinned(reference.key, 5 * 12 + 8, 12);
  REQUIRE(bytes.parts().size() == 2);
  CHECK(bytes.parts()[0].num_bytes() == 4);
  CHECK(bytes.parts()[1].data() == other.data());
}
