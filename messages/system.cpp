#include "messages/system.hpp"

#include <string>
#include <typeinfo>
#include <utility>

#include <caf/io/middleman.hpp>
#include <caf/make_type_erased_value.hpp>

#include "messages/list.hpp"

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

}  // namespace troupe
