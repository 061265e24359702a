#include "modules/task_thread.hpp"

#include <atomic>
#include <future>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {

TEST_CASE("a task thread runs its tasks in the order in which they were given", "[modules]") {
  std::vector<int> ran;
  std::promise<void> last;
  TaskThread thread;
  for (int i = 0; i < 100; ++i) thread.Run([&ran, i] { ran.push_back(i); });
  thread.Run([&last] { last.set_value(); });
  last.get_future().wait();
  REQUIRE(ran.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(ran[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("a task thread that ends completes its task and drops those that have not begun",
          "[modules]") {
  std::promise<void> begun;
  std::atomic<bool> completed = false;
  std::atomic<bool> dropped = true;
  std::promise<void> go_on;
  auto thread = std::make_unique<TaskThread>();
  thread->Run([&] {
    begun.set_value();
    go_on.get_future().wait();
    completed = true;
  });
  thread->Run([&dropped] { dropped = false; });
  begun.get_future().wait();
  std::thread release([&go_on] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    go_on.set_value();
  });
  thread.reset();
  CHECK(completed);
  CHECK(dropped);
  release.join();
}

TEST_CASE("a thread of low priority lets others go first, and they keep theirs", "[modules]") {
  std::promise<int> niceness;
  const int mine = getpriority(PRIO_PROCESS, 0);
  TaskThread thread(TaskPriority::kLow);
  thread.Run([&] { niceness.set_value(getpriority(PRIO_PROCESS, gettid())); });
  CHECK(niceness.get_future().get() > mine);
  CHECK(getpriority(PRIO_PROCESS, gettid()) == mine);
}

}  // namespace troupe
