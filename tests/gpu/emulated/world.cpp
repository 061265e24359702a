#include "tests/gpu/emulated/world.hpp"

#include <stdexcept>

namespace troupe::emulated {
namespace {

World* the_world = nullptr;
thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local int host_functions = 0;

}  // namespace

World& TheWorld() {
  if (the_world == nullptr) throw std::logic_error("emulated CUDA: expected a Machine, got none");
  return *the_world;
}

void Fault(const std::string& text) {
  World& world = TheWorld();
  const std::lock_guard lock(world.fault_mutex);
  if (world.fault.empty()) world.fault = text;
}

cudaError_t Note(cudaError_t code) {
  if (code != cudaSuccess) last_error = code;
  return code;
}

cudaError_t Enter(int device, const char* call) {
  World& world = TheWorld();
  if (host_functions > 0) {
    Fault(std::string(call) + " is called by a host function");
    return Note(cudaErrorNotPermitted);
  }
  if (device < 0 || device >= world.settings.num_devices) return Note(cudaErrorInvalidDevice);
  return Note(world.devices[static_cast<std::size_t>(device)]->error);
}

int CurrentDevice() { return current_device; }

HostFunction::HostFunction() { ++host_functions; }
HostFunction::~HostFunction() { --host_functions; }

Machine::Machine(MachineSettings settings) {
  if (the_world != nullptr) throw std::logic_error("emulated CUDA: expected one Machine at a time");
  the_world = new World;
  the_world->settings = settings;
  for (int i = 0; i < settings.num_devices; ++i)
    the_world->devices.push_back(std::make_unique<Device>());
}

Machine::~Machine() {
  World& world = *the_world;
  for (const auto& stream : world.all_streams) {
    {
      const std::lock_guard lock(stream->mutex);
      stream->ended = true;
    }
    stream->changed.notify_all();
    stream->thread.join();
  }
  while (!world.grave.empty()) {
    ::operator delete (world.grave.front().first, std::align_val_t{256});
    world.grave.pop_front();
  }
  for (const cudaEvent_t event : world.events) delete event;
  for (const auto& [data, allocation] : world.memory)
    ::operator delete (const_cast<std::byte*>(data), std::align_val_t{256});
  delete the_world;
  the_world = nullptr;
  current_device = 0;
  last_error = cudaSuccess;
}

void Machine::Break(int device, cudaError_t error) {
  TheWorld().devices.at(static_cast<std::size_t>(device))->error = error;
}

void Machine::BreakInTurn(cudaStream_t stream, cudaError_t error) {
  InTurn(stream, [this, stream, error] { Break(stream->device, error); });
}

void Machine::InTurn(cudaStream_t stream, std::function<void()> work) {
  stream->Queue({Work::When::kAlways, std::move(work)});
}

void Machine::Spoil(SpoiltCopy copy) {
  const std::lock_guard lock(TheWorld().spoilt_mutex);
  TheWorld().spoilt = copy;
  TheWorld().spoils = true;
}

std::optional<std::size_t> SpoiltByte(std::size_t num_bytes) {
  World& world = TheWorld();
  if (!world.spoils.load(std::memory_order_relaxed)) return std::nullopt;
  const std::lock_guard lock(world.spoilt_mutex);
  if (!world.spoilt || world.spoilt->num_bytes != num_bytes) return std::nullopt;
  if (world.spoilt->skipped-- > 0) return std::nullopt;
  world.spoils = false;
  return std::exchange(world.spoilt, std::nullopt)->byte;
}

std::size_t Machine::num_kernels() const { return TheWorld().num_kernels; }

std::string Machine::fault() const {
  const std::lock_guard lock(TheWorld().fault_mutex);
  return TheWorld().fault;
}

std::string Machine::open() const {
  const World& world = TheWorld();
  for (const auto& stream : world.all_streams) {  // a stream that is destroyed may still run
    std::unique_lock lock(stream->mutex);
    stream->changed.wait(lock, [&] { return stream->num_run == stream->num_queued; });
  }
  const std::shared_lock lock(world.mutex);
  const std::shared_lock memory_lock(world.memory_mutex);
  return std::to_string(world.streams.size()) + " streams, " + std::to_string(world.events.size()) +
         " events, " + std::to_string(world.pools.size()) + " pools, " +
         std::to_string(world.memory.size()) + " allocations";
}

}  // namespace troupe::emulated

using troupe::emulated::Enter;
using troupe::emulated::Note;
using troupe::emulated::TheWorld;

cudaError_t cudaGetDeviceCount(int* count) {
  *count = TheWorld().settings.num_devices;
  return *count == 0 ? Note(cudaErrorNoDevice) : cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = troupe::emulated::current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= TheWorld().settings.num_devices) return Note(cudaErrorInvalidDevice);
  troupe::emulated::current_device = device;
  return Enter(device, "cudaSetDevice");
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t code = Enter(device, "cudaGetDeviceProperties")) return code;
  *properties = {};
  std::string("Emulated GPU").copy(properties->name, sizeof properties->name - 1);
  properties->totalGlobalMem = TheWorld().settings.memory_bytes;
  properties->major = 9;
  properties->multiProcessorCount = 1;
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const auto& devices = TheWorld().devices;
  const auto current = static_cast<std::size_t>(troupe::emulated::current_device);
  const cudaError_t sticky =
      current < devices.size() ? devices[current]->error.load() : cudaSuccess;
  const cudaError_t last = std::exchange(troupe::emulated::last_error, cudaSuccess);
  return sticky != cudaSuccess ? sticky : last;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotPermitted:
      return "cudaErrorNotPermitted";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    default:
      return "cudaErrorUnknown";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    default:
      return "emulated";
  }
}
