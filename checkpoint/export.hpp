// Writes Hugging Face folders.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "checkpoint/export_plan.hpp"

namespace troupe {

struct ExportedSize {
  std::size_t num_tensors = 0;
  std::uint64_t num_bytes = 0;  ///< of the tensors
};

/// Writes the folders of `plan` to `out`, which must be new or an empty folder. All of it is written
/// to OUT.partial and renamed at the end; on failure nothing stays. Needs memory for one tensor, as
/// saved and as written. `wrote` is called after each file with its path and the bytes so far.
/// Throws FileError, std::runtime_error for values that cannot be read.
ExportedSize WriteExport(
    const ExportPlan& plan, const SavedParameters& saved, const std::string& out,
    const std::function<void(const std::string& file, std::uint64_t num_bytes)>& wrote);

/// Throws std::invalid_argument, one line, unless `out` is new or an empty folder.
void RequireNewFolder(const std::string& out);

}  // namespace troupe
