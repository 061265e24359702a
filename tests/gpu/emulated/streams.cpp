// Streams and events of the emulated runtime.
#include <functional>

#include "tests/gpu/emulated/world.hpp"

using troupe::emulated::CurrentDevice;
using troupe::emulated::Enter;
using troupe::emulated::Fault;
using troupe::emulated::HostFunction;
using troupe::emulated::Mark;
using troupe::emulated::Note;
using troupe::emulated::TheWorld;
using troupe::emulated::Work;
using troupe::emulated::World;

namespace troupe::emulated {

void Mark::Pass() {
  {
    const std::lock_guard lock(mutex);
    time = std::chrono::steady_clock::now();
    passed = true;
  }
  changed.notify_all();
}

void Mark::Wait() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return passed; });
}

void Launch(cudaStream_t stream, std::function<void()> kernel) {
  if (Enter(stream->device, "a kernel's launch") != cudaSuccess) return;
  if (CurrentDevice() != stream->device) {
    Fault("a kernel is launched on a stream of device " + std::to_string(stream->device) +
          " by a thread that talks to device " + std::to_string(CurrentDevice()));
    static_cast<void>(Note(cudaErrorInvalidResourceHandle));
    return;
  }
  TheWorld().num_kernels.fetch_add(1, std::memory_order_relaxed);
  stream->Queue({Work::When::kUsesMemory, std::move(kernel)});
}

}  // namespace troupe::emulated

CUstream_st::CUstream_st(int on, unsigned seed)
    : device(on), random(seed), thread([this] { Run(); }) {}

std::size_t CUstream_st::Queue(Work work) {
  std::size_t place = 0;
  {
    const std::lock_guard lock(mutex);
    if (ended) Fault("a stream is used that is destroyed");
    waiting.push_back(std::move(work));
    place = ++num_queued;
  }
  changed.notify_all();
  return place;
}

void CUstream_st::Reach(std::size_t count) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return num_run >= count; });
}

void CUstream_st::Run() {
  World& world = TheWorld();
  const auto longest = world.settings.max_delay.count();
  for (;;) {
    Work work;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return ended || !waiting.empty(); });
      if (waiting.empty()) return;
      work = std::move(waiting.front());
      waiting.pop_front();
    }
    if (longest > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(
          std::uniform_int_distribution<std::chrono::microseconds::rep>(0, longest)(random)));
    {
      std::shared_lock in_use(world.memory_in_use, std::defer_lock);
      if (work.when == Work::When::kUsesMemory) in_use.lock();
      const cudaError_t error = world.devices[static_cast<std::size_t>(device)]->error;
      if (error == cudaSuccess || work.when == Work::When::kAlways) work.run();
    }
    work = {};  // what it kept goes before others hear that it has run
    {
      const std::lock_guard lock(mutex);
      ++num_run;
    }
    changed.notify_all();
  }
}

namespace {

bool IsStream(cudaStream_t stream) {
  const World& world = TheWorld();
  const std::shared_lock lock(world.mutex);
  return world.streams.contains(stream);
}

/// Enter, for calls with a stream: the default stream is not for us.
cudaError_t EnterStream(cudaStream_t stream, const char* call) {
  if (!IsStream(stream)) {
    Fault(std::string(call) + ": no stream, or one that is destroyed");
    return Note(cudaErrorInvalidResourceHandle);
  }
  return Enter(stream->device, call);
}

cudaError_t ErrorOf(int device) {
  return TheWorld().devices[static_cast<std::size_t>(device)]->error;
}

std::shared_ptr<Mark> MarkOf(cudaEvent_t event) {
  const std::lock_guard lock(event->mutex);
  return event->mark;
}

}  // namespace

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (const cudaError_t code = Enter(CurrentDevice(), "cudaStreamCreateWithFlags")) return code;
  if (flags != cudaStreamNonBlocking) Fault("a stream that waits for the default stream");
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  const unsigned seed = world.settings.seed * 1000 + world.num_streams_ever++;
  world.all_streams.push_back(std::make_unique<CUstream_st>(CurrentDevice(), seed));
  *stream = world.all_streams.back().get();
  world.streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!IsStream(stream)) {
    Fault("cudaStreamDestroy: no stream, or one that is destroyed");
    return Note(cudaErrorInvalidResourceHandle);
  }
  World& world = TheWorld();
  const std::lock_guard world_lock(world.mutex);
  world.streams.erase(stream);
  {
    const std::lock_guard lock(stream->mutex);
    stream->ended = true;  // when it has run all, as a real one
  }
  stream->changed.notify_all();
  return ErrorOf(stream->device);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t code = EnterStream(stream, "cudaStreamWaitEvent")) return code;
  if (const std::shared_ptr<Mark> mark = MarkOf(event))
    stream->Queue({Work::When::kWhole, [mark] { mark->Wait(); }});
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* user,
                                  unsigned) {
  if (const cudaError_t code = EnterStream(stream, "cudaStreamAddCallback")) return code;
  stream->Queue({Work::When::kAlways, [=] {
                   const HostFunction in;
                   callback(stream, ErrorOf(stream->device), user);
                 }});
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user) {
  if (const cudaError_t code = EnterStream(stream, "cudaLaunchHostFunc")) return code;
  stream->Queue({Work::When::kWhole, [=] {
                   const HostFunction in;
                   function(user);
                 }});
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t code = EnterStream(stream, "cudaStreamSynchronize")) return code;
  std::size_t all = 0;
  {
    const std::lock_guard lock(stream->mutex);
    all = stream->num_queued;
  }
  stream->Reach(all);
  return Note(ErrorOf(stream->device));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t code = EnterStream(stream, "cudaStreamQuery")) return code;
  const std::lock_guard lock(stream->mutex);
  return stream->num_run == stream->num_queued ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t code = Enter(CurrentDevice(), "cudaEventCreateWithFlags")) return code;
  *event = new CUevent_st;
  (*event)->device = CurrentDevice();
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  world.events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  if (world.events.erase(event) == 0) {
    Fault("cudaEventDestroy: no event, or one that is destroyed");
    return Note(cudaErrorInvalidResourceHandle);
  }
  const int device = event->device;
  delete event;
  return ErrorOf(device);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t code = EnterStream(stream, "cudaEventRecord")) return code;
  if (event->device != stream->device) {
    Fault("cudaEventRecord: an event of device " + std::to_string(event->device) +
          " on a stream of device " + std::to_string(stream->device));
    return Note(cudaErrorInvalidResourceHandle);
  }
  const auto mark = std::make_shared<Mark>();
  {
    const std::lock_guard lock(event->mutex);
    event->mark = mark;
  }
  stream->Queue({Work::When::kAlways, [mark] { mark->Pass(); }});
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t code = Enter(event->device, "cudaEventQuery")) return code;
  const std::shared_ptr<Mark> mark = MarkOf(event);
  if (mark == nullptr) return cudaSuccess;
  const std::lock_guard lock(mark->mutex);
  return mark->passed ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t code = Enter(event->device, "cudaEventSynchronize")) return code;
  if (const std::shared_ptr<Mark> mark = MarkOf(event)) mark->Wait();
  return Note(ErrorOf(event->device));
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  const std::shared_ptr<Mark> first = MarkOf(start);
  const std::shared_ptr<Mark> last = MarkOf(end);
  if (!start->timed || !end->timed || first == nullptr || last == nullptr)
    return Note(cudaErrorInvalidResourceHandle);
  if (cudaEventQuery(start) != cudaSuccess || cudaEventQuery(end) != cudaSuccess)
    return cudaErrorNotReady;
  *ms = std::chrono::duration<float, std::milli>(last->time - first->time).count();
  return cudaSuccess;
}
