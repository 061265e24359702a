// The actor system of one process: CAF's, which knows our messages and where tensors are kept.
#pragma once

#include <memory>

#include <caf/actor_system_config.hpp>

#include "transport/tensor_store.hpp"

namespace troupe {

struct SystemConfig : caf::actor_system_config {
  /// `spans_processes`: load CAF's network module. It listens nowhere by itself; connections are
  /// handed to it (actors/connections.hpp).
  SystemConfig(std::shared_ptr<TensorStore> tensor_store, bool spans_processes);

  std::shared_ptr<TensorStore> tensors;
};

}  // namespace troupe
