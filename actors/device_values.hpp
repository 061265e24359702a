// The tensors of a device's commands: brought to where its programs read them, and looked at.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "actors/device_actor.hpp"

namespace troupe {

/// Throws std::runtime_error for values that are no numbers: they stop the job where they appear,
/// not steps later in the loss. Of buffers on a GPU the GPU has said it (ForwardResult::finish).
void RequireFinite(const std::vector<Buffer>& buffers, const char* what);

/// Whatever of a command's tensors is not in this process or not in this device's memory yet. Most
/// were brought ahead, by a leader or the stage; a rank in another process than its stage finds its
/// inputs here.
void Bring(DeviceState& s, std::vector<Buffer>& buffers, const char* what);
/// The same for what a Feed brought; it stays on the host.
std::shared_ptr<const Inputs> Brought(const DeviceState& s,
                                      const std::shared_ptr<const Inputs>& in);

/// In virtual time nobody waits in a collective: rows of the right shape, zeros instead of what the
/// others hold.
Buffer EmptyExchange(const DeviceState& s, const RunExchange& run);

/// What may be wrong with values that the host can read; a device looks while it computes.
template <class Result>
void Finish(Result& result) {
  if (result.finish) std::exchange(result.finish, nullptr)(result);
}

}  // namespace troupe
