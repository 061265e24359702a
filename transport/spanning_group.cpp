#include "transport/spanning_group.hpp"

#include <algorithm>

namespace troupe {

std::vector<Party> PartiesOf(const std::vector<ProcessId>& homes) {
  std::vector<Party> parties;
  for (int member = 0; member < static_cast<int>(homes.size()); ++member) {
    const ProcessId process = homes[static_cast<std::size_t>(member)];
    auto party = std::find_if(parties.begin(), parties.end(),
                              [&](const Party& other) { return other.process == process; });
    if (party == parties.end()) {
      parties.push_back({process, {}, {}});
      party = parties.end() - 1;
    }
    if (party->members.empty() || party->members.back() != member - 1)
      party->runs.push_back({member, 0});
    party->members.push_back(member);
    ++party->runs.back().count;
  }
  return parties;
}

std::string SpanningGroup::Describe(int member) const {
  const ProcessId process = home(member);
  return "member " + std::to_string(member) + " (" +
         (names.waits != nullptr ? names.waits->NameOf(process)
                                 : "process " + std::to_string(process)) +
         ")";
}

}  // namespace troupe
