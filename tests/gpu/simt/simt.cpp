// The threads of a block as coroutines on one stack each. A thread runs until it ends or waits;
// when all of a warp, or all of the block, wait for the same, they go on. Threads that wait for
// what will not come are an error of the kernel: it would hang on a device, or worse.
#include "tests/gpu/simt/simt.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
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
  std::size_t next = 0;                  ///< thread that has not begun
  std::size_t running = 0;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::size_t num_fibers = 0;  ///< that this block uses
  ucontext_t scheduler{};
};

thread_local Block block;

void Become(std::size_t number) {
  const auto n = static_cast<unsigned>(number);
  block.running = number;
  threadIdx = {n % blockDim.x, n / blockDim.x % blockDim.y, n / blockDim.x / blockDim.y};
}

/// A fiber: one thread after the other, for as long as there are any.
void RunThreads() {
  const std::size_t fiber = block.num_fibers - 1;
  while (block.next < block.threads.size()) {
    const std::size_t number = block.next++;
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
/// full mask nobody of a warp may have ended: no device says what such threads give.
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

bool ReleaseSome() {
  const std::size_t size = block.threads.size();
  bool any = false;
  for (std::size_t begin = 0; begin < size; begin += kWarpSize) {
    any = Release(begin, std::min(begin + kWarpSize, size), Awaits::kWarp) || any;
  }
  return any || Release(0, size, Awaits::kBlock);
}

void RunBlock(const std::function<void()>& body) {
  const std::size_t size = std::size_t{blockDim.x} * blockDim.y * blockDim.z;
  block.body = &body;
  block.threads.assign(size, {});
  block.exchanged.resize(size);
  block.next = block.num_fibers = 0;
  while (block.next < size) StartFiber();
  const auto ended = [](const Thread& thread) { return thread.awaits == Awaits::kEnded; };
  while (!std::all_of(block.threads.begin(), block.threads.end(), ended)) {
    if (!ReleaseSome()) Fail("threads of a block wait for others that do not come");
    for (std::size_t i = 0; i < size; ++i) {
      if (block.threads[i].awaits == Awaits::kNothing) Resume(i);
    }
  }
}

}  // namespace

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
    for (unsigned z = 0; z < blocks.z; ++z) {
      for (unsigned y = 0; y < blocks.y; ++y) {
        for (unsigned x = 0; x < blocks.x; ++x) {
          blockIdx = {x, y, z};
          simt::RunBlock(thread);
        }
      }
    }
  });
  TROUPE_CUDA(cudaGetLastError());
}

}  // namespace troupe::gpu
