// The files of checkpoints that other processes of the job have, read through their Nodes.
#pragma once

#include <memory>
#include <vector>

#include "files/byte_source.hpp"
#include "messages/node.hpp"
#include "transport/abort_signal.hpp"

namespace troupe {

/// Opens a file that one of `nodes` has. It and the files it opens block, and throw Aborted when
/// the job fails meanwhile: a Node that is lost does not answer.
OpenElsewhere OpenOn(caf::actor_system& system, std::vector<Node> nodes,
                     std::shared_ptr<AbortSignal> abort);

}  // namespace troupe
