// Groups whose members may live in several processes: who asks need not know where they live.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/abort_signal.hpp"
#include "transport/communicator.hpp"
#include "transport/data_plane.hpp"
#include "transport/group_waits.hpp"

namespace troupe {

/// Makes the communicators of those members of one group that live in this process: result[i] is
/// the view of member i if homes[i] is this process, else null. Every process of the group calls
/// this with the same `name` and `homes`; no two groups that are open at once share a name.
///
///   homes  process of each member, in rank order, mixed as they like; at most 4096 members
///   plane  between the processes; must outlive the result. Null only if all homes are equal
///   abort  the job's, which is the plane's, too. Null only if all homes are equal
///   waits  gets what members wait for; may be null
///   names  of the members, for these waits ("device 3"); may be empty
///
/// If all members live here, or there is no plane, this is MakeLocalGroup. Else:
///   - Where every process has one member, results are bit for bit those of MakeLocalGroup. Where
///     one has several, sums are taken within each process first, in rank order, and then over the
///     processes, in the order of their lowest members: other roundings, the same on all members
///     and in every run.
///   - A member that fails ends the job: illegal arguments (std::invalid_argument on the member
///     that made them), calls that differ (std::logic_error on members that see it, naming both
///     calls) and a plane that fails (std::runtime_error in its words) raise `abort`. That ends the
///     waits of all others in this process with Aborted; those of other processes end when the job
///     has carried the signal there. Members whose own part was complete may have returned. The
///     group is of no use afterwards.
///   - A member that is gone ends the waits of members in its own process only.
///   - Messages are read where they lie. After an abort a peer may still read the memory of a call
///     that has thrown: it gets the old bytes, new ones or an error, and nobody uses them. Nothing
///     is written into the memory of a call that has returned or thrown.
///
/// Throws std::invalid_argument for no members, too many, a home that is no process of the plane,
/// and for a null plane or signal where one is needed.
std::vector<std::unique_ptr<Communicator>> MakeGroup(const std::string& name,
                                                     const std::vector<ProcessId>& homes,
                                                     DataPlane* plane,
                                                     std::shared_ptr<AbortSignal> abort,
                                                     GroupWaits* waits = nullptr,
                                                     std::vector<std::string> names = {});

}  // namespace troupe
