// The configuration of a process's actor system: CAF's, with our messages and the tensor store.
#pragma once

#include <memory>

#include <caf/actor_system_config.hpp>

#include "transport/tensor_store.hpp"

namespace troupe {

struct SystemConfig : caf::actor_system_config {
  /// `spans_processes`: load CAF's network module. It does not listen; it is given connections
  /// (actors/connections.hpp).
  SystemConfig(std::shared_ptr<TensorStore> tensor_store, bool spans_processes);

  std::shared_ptr<TensorStore> tensors;
};

}  // namespace troupe
