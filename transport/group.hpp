// Groups whose members may live in several processes. Callers need not know which.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/abort_signal.hpp"
#include "transport/communicator.hpp"
#include "transport/data_plane.hpp"
#include "transport/group_waits.hpp"

namespace troupe {

/// Makes the communicators of this process's members of one group: result[i] is the view of member
/// i if homes[i] is this process, otherwise null. Every process of the group calls this with the
/// same `name` and `homes`. No two open groups may share a name.
///
///   homes  process of each member, in rank order; any mixture; at most 4096 members
///   plane  connects the processes; must outlive the result. Null only if all homes are equal
///   abort  the job's signal, which the plane also uses. Null only if all homes are equal
///   waits  receives the waits of members; may be null
///   names  of the members, for these waits ("device 3"); may be empty
///
/// If all members live here, or there is no plane, this is MakeLocalGroup. Otherwise:
///   - If every process has one member, results are bitwise those of MakeLocalGroup. If a process
///     has several, sums are taken within each process first, in rank order, and then over the
///     processes, in the order of their lowest members. The rounding then differs, but is the
///     same on all members and in every run.
///   - A member that fails ends the job. Illegal arguments (std::invalid_argument on the member
///     that made them), calls that differ (std::logic_error on members that see it, naming both
///     calls) and a failed plane (std::runtime_error with its error text) raise `abort`. That ends
///     the waits of all other members in this process with Aborted. The waits in other processes
///     end when the job has propagated the signal. Members whose own part was complete may have
///     returned. The group cannot be used afterwards.
///   - A member that is destroyed ends the waits of members in its own process only.
///   - Messages are read in place. After an abort a peer may still read the memory of a call that
///     has thrown: it receives old bytes, new bytes or an error, and ignores them. The memory of a
///     call that has returned or thrown is never written.
///
/// Throws std::invalid_argument for no members, for too many, for a home outside the plane's
/// processes, and for a null plane or signal where one is needed.
std::vector<std::unique_ptr<Communicator>> MakeGroup(const std::string& name,
                                                     const std::vector<ProcessId>& homes,
                                                     DataPlane* plane,
                                                     std::shared_ptr<AbortSignal> abort,
                                                     GroupWaits* waits = nullptr,
                                                     std::vector<std::string> names = {});

}  // namespace troupe
