// The kinds of work behind OpenWork.
#pragma once

#include <memory>

#include "cli/work.hpp"

namespace troupe {

std::unique_ptr<Work> OpenTraining(const WorkArguments& arguments);
/// Throws DataError for modules that compute nothing that could be verified.
std::unique_ptr<Work> OpenVerification(const WorkArguments& arguments);

}  // namespace troupe
