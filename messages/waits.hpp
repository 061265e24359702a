// Asking an actor what it waits for, when nothing moves any more.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/wire.hpp"

namespace troupe {

struct ReportWaits {};
inline auto Fields(ReportWaits&) { return std::tie(); }

/// In words, the awaited one last: "stage language.s0 dp0: activation of microbatch 3 <- vision".
/// Empty: it waits for nobody.
struct Waits {
  std::vector<std::string> lines;
};
inline auto Fields(Waits& x) { return std::tie(x.lines); }

using Waiting = caf::typed_actor<caf::replies_to<ReportWaits>::with<Waits>>;

}  // namespace troupe
