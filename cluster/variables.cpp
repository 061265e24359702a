#include "cluster/variables.hpp"

namespace troupe {

const std::string* FindVariable(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() || found->second.empty() ? nullptr : &found->second;
}

}  // namespace troupe
