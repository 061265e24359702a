#include "messages/system.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/io/middleman.hpp>

#include "messages/list.hpp"
#include "messages/wire.hpp"

namespace troupe {
SystemConfig::SystemConfig(std::shared_ptr<TensorStore> tensor_store, bool spans_processes)
    : tensors(std::move(tensor_store)) {
  // Workers sleep immediately instead of polling: a device's answer wakes them in 5 us, not 50.
  set("work-stealing.moderate-poll-attempts", std::size_t{0});
  set("scheduler.max-threads", std::size_t{2});  // handlers are short; ranks have their own
  if (!spans_processes) return;
  load<caf::io::middleman>();
  // Type names travel with every message, so they are short: the index in the list, which is the
  // same in all processes, as they have the same build.
  const auto register_one = [this, number = 0]<class Message>() mutable {
    add_message_type<Message>("m" + std::to_string(number++));
  };
  decltype(WorkMessages() + NodeMessages())::ForEach(register_one);
  add_message_type<Failure>("failure");  // in a caf::error
}

namespace wire {

TensorStore& StoreOf(caf::execution_unit* context) {
  const auto* config =
      context == nullptr ? nullptr : dynamic_cast<const SystemConfig*>(&context->system().config());
  if (config == nullptr || !config->tensors) {
    throw std::logic_error("a tensor crosses processes in a system without a tensor store");
  }
  return *config->tensors;
}

caf::error Broken(const char* what) {
  return caf::make_error(caf::sec::invalid_argument, std::string("broken message: ") + what);
}

}  // namespace wire
}  // namespace troupe
