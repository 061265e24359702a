#include "messages/system.hpp"

#include <stdexcept>
#include <string>
#include <typeinfo>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/io/middleman.hpp>
#include <caf/make_type_erased_value.hpp>

#include "messages/list.hpp"
#include "messages/wire.hpp"

namespace troupe {
namespace {

/// Registers the type alone. CAF's add_message_type also registers its vectors and streams, which are
/// never sent and take longer to compile than all the rest.
template <class Message>
void Register(caf::actor_system_config& config, const std::string& name) {
  const auto make = &caf::make_type_erased_value<Message>;
  config.type_names_by_rtti.emplace(typeid(Message), name);
  config.value_factories_by_name.emplace(name, make);
  config.value_factories_by_rtti.emplace(typeid(Message), make);
}

}  // namespace

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
    Register<Message>(*this, "m" + std::to_string(number++));
  };
  decltype(WorkMessages() + NodeMessages())::ForEach(register_one);
  Register<Failure>(*this, "failure");  // in a caf::error
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
