// The threads of a block as coroutines on one stack each. A thread runs until it ends or waits;
// when all of a warp, or all of the block, wait for the same, they go on. A warp goes as far as it
// gets before another moves; which one that is, and which thread of it, is drawn for each block,
// and so is the order of the blocks. So where a barrier is missing some read what others have not
// written yet, or write over what they have not read. Threads that wait for what will not come are
// an error of the kernel: it would hang on a device, or worse.
#include "tests/gpu/simt/simt.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <ucontext.h>
#include <vector>

#include "gpu/kernels/launch.hpp"
#include "tests/gpu/emulated/world.hpp"

namespace troupe::simt {
namespace {

constexpr std::size_t kWarpSize = 32;
constexpr std::size_t kStackBytes = 64 << 10;

enum class Awaits { kNothing, kWarp, kBlock, kEnded };

/// What threads run on. One that never waits leaves it to the next, so that most blocks need one.
struct Fiber {
  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack = std::make_unique<std::byte[]>(kStackBytes);
};

struct Thread {
  std::size_t fiber = 0;
  Awaits awaits = Awaits::kNothing;
  std::uint64_t given = 0;
};

/// The block that runs on this OS thread.
struct Block {
  const std::function<void()>* body = nullptr;
  std::vector<Thread> threads;
  std::vector<std::uint64_t> exchanged;  ///< what each thread gave when its warp met last
  std::vector<std::size_t> order;        ///< of the threads; those of a warp are neighbours
  std::size_t next = 0;                  ///< place in it of the first that has not begun
  std::size_t until = 0;                 ///< those before it may begin
  std::size_t running = 0;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::size_t num_fibers = 0;  ///< that this block uses
  ucontext_t scheduler{};
};

thread_local Block block;
std::atomic<unsigned> num_launches = 0;

using Random = std::minstd_rand;

void Become(std::size_t number) {
  const auto n = static_cast<unsigned>(number);
  block.running = number;
  threadIdx = {n % blockDim.x, n / blockDim.x % blockDim.y, n / blockDim.x / blockDim.y};
}

/// A fiber: one thread after the other, for as long as any may begin.
void RunThreads() {
  const std::size_t fiber = block.num_fibers - 1;
  while (block.next < block.until) {
    const std::size_t number = block.order[block.next++];
    block.threads[number].fiber = fiber;
    Become(number);
    (*block.body)();
    block.threads[number].awaits = Awaits::kEnded;
  }
  swapcontext(&block.fibers[fiber]->context, &block.scheduler);
}

void StartFiber() {
  if (block.num_fibers == block.fibers.size()) block.fibers.push_back(std::make_unique<Fiber>());
  Fiber& fiber = *block.fibers[block.num_fibers++];
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, RunThreads, 0);
  swapcontext(&block.scheduler, &fiber.context);
}

void Await(Awaits what) {
  Thread& self = block.threads[block.running];
  self.awaits = what;
  swapcontext(&block.fibers[self.fiber]->context, &block.scheduler);
}

void Resume(std::size_t number) {
  Become(number);
  swapcontext(&block.scheduler, &block.fibers[block.threads[number].fiber]->context);
}

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "simt: %s\n", what);
  std::abort();
}

/// Lets [begin, end) go on if all that have not ended await `what`; says whether any did. For a
/// full mask no thread of a warp may have ended: their values are undefined.
bool Release(std::size_t begin, std::size_t end, Awaits what) {
  bool any = false;
  for (std::size_t i = begin; i < end; ++i) {
    const Awaits awaits = block.threads[i].awaits;
    if (awaits != what && (awaits != Awaits::kEnded || what == Awaits::kWarp)) return false;
    any = any || awaits == what;
  }
  for (std::size_t i = begin; any && i < end; ++i) {
    Thread& thread = block.threads[i];
    block.exchanged[i] = thread.given;
    if (thread.awaits == what) thread.awaits = Awaits::kNothing;
  }
  return any;
}

/// Whole numbers below `count`: upwards, downwards or in any order.
std::vector<std::size_t> Ordered(std::size_t count, Random& random) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  const auto drawn = random() % 3;
  if (drawn == 1) std::reverse(numbers.begin(), numbers.end());
  if (drawn == 2) std::shuffle(numbers.begin(), numbers.end(), random);
  return numbers;
}

std::vector<std::size_t> OrderOfThreads(std::size_t size, Random& random) {
  std::vector<std::size_t> order;
  for (const std::size_t warp : Ordered((size + kWarpSize - 1) / kWarpSize, random)) {
    const std::size_t begin = warp * kWarpSize;
    for (const std::size_t lane : Ordered(std::min(kWarpSize, size - begin), random)) {
      order.push_back(begin + lane);
    }
  }
  return order;
}

/// The warp whose threads are at [from, to) of the order, until all of them have ended or wait for
/// others.
void RunWarp(std::size_t from, std::size_t to) {
  const std::size_t begin = block.order[from] / kWarpSize * kWarpSize;
  block.until = to;
  while (block.next < to) StartFiber();
  do {
    for (std::size_t i = from; i < to; ++i) {
      if (block.threads[block.order[i]].awaits == Awaits::kNothing) Resume(block.order[i]);
    }
  } while (Release(begin, begin + (to - from), Awaits::kWarp));
}

void RunBlock(const std::function<void()>& body, Random& random) {
  const std::size_t size = std::size_t{blockDim.x} * blockDim.y * blockDim.z;
  block.body = &body;
  block.threads.assign(size, {});
  block.exchanged.resize(size);
  block.order = OrderOfThreads(size, random);
  block.next = block.num_fibers = 0;
  const auto ended = [](const Thread& thread) { return thread.awaits == Awaits::kEnded; };
  for (;;) {
    for (std::size_t from = 0; from < size;) {
      const std::size_t begin = block.order[from] / kWarpSize * kWarpSize;
      const std::size_t to = from + std::min(kWarpSize, size - begin);
      RunWarp(from, to);
      from = to;
    }
    if (std::all_of(block.threads.begin(), block.threads.end(), ended)) return;
    if (!Release(0, size, Awaits::kBlock)) {
      Fail("threads of a block wait for others that do not come");
    }
  }
}

}  // namespace

/// All blocks of gridDim, one after the other.
void RunBlocks(const std::function<void()>& thread) {
  Random random(++num_launches);
  const std::size_t plane = std::size_t{gridDim.x} * gridDim.y;
  for (const std::size_t number : Ordered(plane * gridDim.z, random)) {
    blockIdx = {static_cast<unsigned>(number % gridDim.x),
                static_cast<unsigned>(number % plane / gridDim.x),
                static_cast<unsigned>(number / plane)};
    RunBlock(thread, random);
  }
}

void WaitForBlock() { Await(Awaits::kBlock); }

int Lane() { return static_cast<int>(block.running % kWarpSize); }

std::uint64_t Exchange(std::uint64_t value, int lane) {
  const std::size_t warp = block.running / kWarpSize * kWarpSize;
  block.threads[block.running].given = value;
  Await(Awaits::kWarp);
  return block.exchanged[warp + static_cast<std::size_t>(lane)];
}

}  // namespace troupe::simt

namespace troupe::gpu {

void LaunchOnHost(dim3 blocks, dim3 threads, StreamView stream, std::function<void()> thread) {
  const std::size_t per_block = std::size_t{threads.x} * threads.y * threads.z;
  if (per_block == 0 || per_block > 1024 || blocks.x == 0 || blocks.y == 0 || blocks.y > 65535 ||
      blocks.z == 0) {
    TROUPE_CUDA(cudaErrorInvalidConfiguration);
  }
  emulated::Launch(stream.get(), [=] {
    gridDim = blocks;
    blockDim = threads;
    simt::RunBlocks(thread);
  });
  TROUPE_CUDA(cudaGetLastError());
}

}  // namespace troupe::gpu
