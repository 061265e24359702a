// The implementations of Work.
#pragma once

#include <memory>

#include "app/work.hpp"

namespace troupe {

std::unique_ptr<Work> OpenTraining(const RunSpec& run);
/// Throws DataError for synthetic modules, which compute nothing to verify.
std::unique_ptr<Work> OpenVerification(const RunSpec& run);

}  // namespace troupe
