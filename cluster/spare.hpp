// A process that waits to take a lost one's place. It connects to process 0, proves the run key, shows
// that it fits the job, and waits. While the job meets again, process 0 gives it the place of a
// process that is absent; then it joins as that one.
#pragma once

#include <optional>
#include <string>

#include "cluster/join.hpp"
#include "cluster/join_message.hpp"

namespace troupe {

/// Blocks until the spare gets a place. It looks for process 0 for `options.timeout` at first, and for
/// as long whenever the connection breaks, since process 0 listens anew for each generation of the
/// job. `options.self.process` is kSpareProcess. Throws JoinError: of fault kEnded with the end of the
/// job, else with the reason why it does not fit, or the address that it cannot reach.
TakePlace AwaitPlace(const RunKey& key, const JoinOptions& options);

/// Returns why the job of `first` has no use for a spare; nullopt if it has. `lasting` as in
/// JoinOptions.
std::optional<Refusal> RefusalOfSpare(const Hello& first, bool lasting, Hello spare,
                                      const std::string& from);

}  // namespace troupe
