// What a Node tells of the waits of its process and, asking all Nodes, of the job.
#pragma once

#include <string>

#include "actors/node_actor.hpp"

namespace troupe {

/// What all actors of this process wait for. Who does not answer soon is told to be busy.
caf::result<Waits> CollectWaits(NodePointer self);

/// Writes what everybody waits for beside the traces, on process 0.
void OnTellWaits(NodePointer self);

/// Ends the job with the wait behind all others. Asks twice: a question is answered after whatever
/// waited in the mailbox before it, so that on a machine which is short of cores everybody has
/// moved on by the second answer, and nothing was wrong.
void OnStalled(NodePointer self, const Stalled& stalled);

/// Writes a file beside the traces, where there are any. Nobody can do anything if that fails.
void KeepBesideTraces(const NodeConfig& config, const char* file, const std::string& text);

}  // namespace troupe
