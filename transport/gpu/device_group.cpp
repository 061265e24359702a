#include "transport/gpu/device_group.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/check.hpp"
#include "gpu/device.hpp"
#include "transport/gpu/patience.hpp"
#include "transport/gpu/shared_device.hpp"
#include "transport/gpu/staged_communicator.hpp"

namespace troupe {
namespace {

/// A member's device, as sent to the others.
struct Place {
  std::int32_t process = 0;
  std::int32_t device = 0;  ///< number within its process
  gpu::DeviceId id;         ///< the same in all processes
  bool has_library = false;
};

std::vector<Place> PlacesOf(const DeviceMember& member, bool has_library) {
  Place own;
  std::memset(static_cast<void*>(&own), 0, sizeof own);
  own.process = member.process;
  own.device = member.stream->device();
  try {
    own.id = gpu::IdOf(own.device);
  } catch (const gpu::CudaError& error) {
    RaiseFor(member, error.what());
    throw;
  }
  own.has_library = has_library;
  std::vector<Place> places(static_cast<std::size_t>(member.host->size()));
  member.host->AllGather(&own, sizeof own, places.data());
  return places;
}

/// The first two members that share a device.
std::optional<std::pair<int, int>> SharingPair(const std::vector<Place>& places) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t j = i + 1; j < places.size(); ++j)
      if (places[i].id == places[j].id) return std::pair{static_cast<int>(i), static_cast<int>(j)};
  }
  return std::nullopt;
}

/// "rank 0 to rank 3", or the only one.
std::string Members(const DeviceMember& member) {
  const int size = member.host->size();
  if (size == 1) return member.names.MemberName(0);
  return member.names.MemberName(0) + " to " + member.names.MemberName(size - 1);
}

}  // namespace

DeviceGroup MakeDeviceGroup(DeviceMember member, DeviceCollectives* library) {
  std::vector<Place> places;
  {
    const Patience patience(member);
    places = PlacesOf(member, library != nullptr);
  }
  const Place& first = places.front();
  const auto all = [&](auto holds) { return std::all_of(places.begin(), places.end(), holds); };
  const bool one_device =
      all([&](const Place& it) { return it.id == first.id && it.process == first.process; });
  const auto sharing = SharingPair(places);
  const bool has_library = all([](const Place& it) { return it.has_library; });
  const std::string start = member.names.group + ": ";
  if (one_device) {
    std::string how = "copies on device " + std::to_string(first.device) + ", shared by ";
    if (places.size() == 1) how = "only one member, ";
    how = start + how + Members(member);
    return {JoinSharedDevice(std::move(member)), how};
  }
  if (!sharing && has_library) {
    const std::string how = start + library->name() + " over " + Members(member);
    return {library->Join(std::move(member)), how};
  }
  const std::string why = sharing ? member.names.MemberName(sharing->first) + " and " +
                                        member.names.MemberName(sharing->second) + " share a device"
                                  : "no library between devices is built in";
  const std::string how =
      start + "through pinned memory over " + Members(member) + ", since " + why;
  return {MakeStagedCommunicator(std::move(member)), how};
}

}  // namespace troupe
