#include "transport/group.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "transport/spanning_exchange.hpp"
#include "transport/spanning_group.hpp"

namespace troupe {
namespace {

// So that a pair of members fits into the part of a sequence number.
constexpr std::size_t kMaxMembers = 4096;
static_assert(kMaxMembers * kMaxMembers <= kMaxParts);

void CheckHomes(const std::string& name, const std::vector<ProcessId>& homes,
                const DataPlane* plane) {
  if (homes.empty() || homes.size() > kMaxMembers) {
    throw std::invalid_argument("group " + name + ": expected 1 to " + std::to_string(kMaxMembers) +
                                " members, got " + std::to_string(homes.size()));
  }
  if (plane == nullptr) return;
  for (std::size_t member = 0; member < homes.size(); ++member) {
    if (homes[member] < 0 || homes[member] >= plane->num_processes()) {
      throw std::invalid_argument(
          "group " + name + ": member " + std::to_string(member) + ": expected a process in [0, " +
          std::to_string(plane->num_processes()) + "), got " + std::to_string(homes[member]));
    }
  }
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> MakeGroup(
    const std::string& name, const std::vector<ProcessId>& homes, DataPlane* plane,
    std::shared_ptr<AbortSignal> abort, GroupWaits* waits, std::vector<std::string> names) {
  CheckHomes(name, homes, plane);
  std::vector<Party> parties = PartiesOf(homes);
  if (plane == nullptr && parties.size() > 1) {
    throw std::invalid_argument("group " + name + ": expected a data plane between its " +
                                std::to_string(parties.size()) + " processes, got none");
  }
  const ProcessId self = plane != nullptr ? plane->self() : homes.front();
  const auto own = std::find_if(parties.begin(), parties.end(),
                                [&](const Party& party) { return party.process == self; });
  if (own == parties.end()) return std::vector<std::unique_ptr<Communicator>>(homes.size());
  GroupNames group_names{waits, name, std::move(names)};
  if (parties.size() == 1) {
    return MakeLocalGroup(static_cast<int>(homes.size()), std::move(abort), std::move(group_names));
  }
  if (abort == nullptr)
    throw std::invalid_argument("group " + name + ": expected the job's abort signal, got none");

  auto group = std::make_shared<SpanningGroup>();
  group->name = name;
  group->homes = homes;
  group->self = static_cast<std::size_t>(own - parties.begin());
  group->parties = std::move(parties);
  group->stream = StreamOf("group " + name);
  group->plane = plane;
  group->abort = std::move(abort);
  group->names = std::move(group_names);
  return MakeSpanningGroup(std::move(group));
}

}  // namespace troupe
