// The functions of NCCL that transport/nccl calls.
#include "tests/gpu/emulated/nccl/nccl.hpp"

#include <cstring>
#include <stdexcept>

#include "tests/gpu/emulated/nccl/world.hpp"
#include "tests/gpu/emulated/world.hpp"

namespace troupe::emulated {
namespace {

NcclWorld* the_nccl = nullptr;

/// The calls between ncclGroupStart and ncclGroupEnd of a thread.
struct Group {
  int depth = 0;
  std::shared_ptr<Link> link;
  cudaStream_t stream = nullptr;
  NcclExchange exchange;
};
thread_local Group group;

/// A call is made: it may be in progress for a while.
ncclResult_t Made(Link& link) {
  const std::lock_guard lock(link.clique->mutex);
  if (link.error != ncclSuccess) return link.error;
  if (link.slow > 0) Fault("NCCL is called while the call before is in progress");
  link.slow = TheNccl().settings.slow_calls;
  return link.slow > 0 ? ncclInProgress : ncclSuccess;
}

ncclResult_t QueueCall(ncclComm_t comm, cudaStream_t stream, const NcclCall& call) {
  const std::shared_ptr<Link> link = comm->link;
  const std::uint64_t number = link->num_calls++;
  stream->Queue({Work::When::kWhole, [=] { RunCollective(*link, number, call); }});
  return Made(*link);
}

std::byte* Bytes(void* data) { return static_cast<std::byte*>(data); }
const std::byte* Bytes(const void* data) { return static_cast<const std::byte*>(data); }

}  // namespace

NcclWorld& TheNccl() {
  if (the_nccl == nullptr) throw std::logic_error("emulated NCCL: expected a NcclNetwork");
  return *the_nccl;
}

NcclNetwork::NcclNetwork(NcclSettings settings) {
  if (the_nccl != nullptr) throw std::logic_error("emulated NCCL: expected one at a time");
  the_nccl = new NcclWorld;
  the_nccl->settings = settings;
}

NcclNetwork::~NcclNetwork() {
  delete the_nccl;
  the_nccl = nullptr;
}

void NcclNetwork::Fail(int rank, ncclResult_t code, const std::string& words) {
  std::vector<std::shared_ptr<Link>> all;
  {
    const std::lock_guard lock(TheNccl().mutex);
    for (const auto& it : TheNccl().links)
      if (auto link = it.lock(); link != nullptr && link->rank == rank) all.push_back(link);
  }
  for (const auto& link : all) {
    const std::lock_guard lock(link->clique->mutex);
    link->error = code;
    link->words = words;
  }
}

std::string NcclNetwork::counts() const {
  const std::lock_guard lock(TheNccl().mutex);
  return std::to_string(TheNccl().num_made) + " made, " + std::to_string(TheNccl().num_aborted) +
         " aborted, " + std::to_string(TheNccl().num_destroyed) + " destroyed";
}

}  // namespace troupe::emulated

using namespace troupe::emulated;

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  NcclWorld& world = TheNccl();
  const std::lock_guard lock(world.mutex);
  *id = {};
  const std::uint64_t number = ++world.num_ids;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  NcclWorld& world = TheNccl();
  if (config->blocking != 0) Fault("a communicator is made that blocks");
  if (world.settings.refused == rank) return world.settings.refusal;
  const auto link = std::make_shared<Link>();
  {
    const std::lock_guard lock(world.mutex);
    std::uint64_t number = 0;
    std::memcpy(&number, id.internal, sizeof number);
    std::shared_ptr<Clique>& clique = world.cliques[number];
    if (clique == nullptr) clique = std::make_shared<Clique>();
    link->clique = clique;
    link->rank = rank;
    link->device = CurrentDevice();
    world.links.push_back(link);
    ++world.num_made;
  }
  const std::lock_guard lock(link->clique->mutex);
  link->clique->size = size;
  for (const auto& [member, device] : link->clique->devices)
    if (device == link->device) Fault("NCCL: two members share a device");
  if (world.settings.stalled != rank) link->clique->devices.emplace(rank, link->device);
  *comm = new ncclComm{link};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  Link& link = *comm->link;
  const std::lock_guard lock(link.clique->mutex);
  *error = link.error;
  if (link.error != ncclSuccess) return ncclSuccess;
  const bool connected = static_cast<int>(link.clique->devices.size()) == link.clique->size;
  if (!connected || link.slow > 0) *error = ncclInProgress;
  if (link.slow > 0) --link.slow;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) { return Made(*comm->link); }

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  {
    const std::lock_guard lock(TheNccl().mutex);
    ++TheNccl().num_destroyed;
  }
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  std::vector<std::shared_ptr<Link>> others;
  {
    const std::lock_guard lock(TheNccl().mutex);
    ++TheNccl().num_aborted;
    for (const auto& it : TheNccl().links)
      if (auto link = it.lock(); link != nullptr && link != comm->link) others.push_back(link);
  }
  // Outside of a group it gives memory back, and so waits for all that runs on the device.
  for (const auto& other : others) {
    if (group.depth > 0 || other->device != comm->link->device) continue;
    const std::lock_guard lock(other->clique->mutex);
    if (other->waiting > 0 && !other->aborted)
      Fault("NCCL: a communicator is aborted alone while another waits on its device");
  }
  {
    const std::lock_guard lock(comm->link->clique->mutex);
    comm->link->aborted = true;
  }
  comm->link->clique->changed.notify_all();
  delete comm;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t code) {
  switch (code) {
    case ncclSystemError:
      return "unhandled system error";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInvalidUsage:
      return "invalid usage";
    default:
      return "another error";
  }
}

const char* ncclGetLastError(ncclComm_t comm) {
  return comm != nullptr ? comm->link->words.c_str() : "";
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return QueueCall(comm, stream,
                   {NcclCall::Kind::kAllReduce, count, type, op, 0, Bytes(from), Bytes(to)});
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return QueueCall(comm, stream,
                   {NcclCall::Kind::kAllGather, count, type, ncclSum, 0, Bytes(from), Bytes(to)});
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return QueueCall(comm, stream,
                   {NcclCall::Kind::kReduceScatter, count, type, op, 0, Bytes(from), Bytes(to)});
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return QueueCall(
      comm, stream,
      {NcclCall::Kind::kBroadcast, count, type, ncclSum, root, Bytes(from), Bytes(to)});
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  if (group.depth == 0) Fault("a send outside of a group");
  group.link = comm->link;
  group.stream = stream;
  group.exchange.sends.push_back({peer, {Bytes(data), count, std::make_shared<bool>(false)}});
  return ncclSuccess;
}

ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (group.depth == 0) Fault("a receive outside of a group");
  group.link = comm->link;
  group.stream = stream;
  group.exchange.receives.push_back({peer, Bytes(data), count});
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group.depth > 0 || group.link == nullptr) return ncclSuccess;
  const Group whole = std::exchange(group, {});
  whole.stream->Queue({Work::When::kWhole, [link = whole.link, exchange = whole.exchange] {
                         RunExchange(*link, exchange);
                       }});
  return Made(*whole.link);
}
