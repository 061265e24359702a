#include "actors/actor_base.hpp"

#include <caf/message.hpp>

namespace troupe {

Failure FailureOf(const caf::error& error) {
  const caf::message& context = error.context();
  if (context.size() == 1 && context.match_element<Failure>(0)) {
    return context.get_as<Failure>(0);
  }
  if (context.size() == 1 && context.match_element<std::string>(0)) {
    return context.get_as<std::string>(0);
  }
  return to_string(error);
}

}  // namespace troupe
