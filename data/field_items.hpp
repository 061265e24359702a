// Reads the files of a field as the items of a batch.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/sample.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

/// Returns the items of `files`, in order. Calls `failed` for a file that cannot be read; if that
/// returns, the item's values are 0. An item of unknown length cannot be replaced: what `failed` does
/// not throw then, this throws.
FieldItems ReadItems(const ItemFormat& format, const std::vector<ItemFile>& files,
                     const std::function<void(std::size_t file, const std::runtime_error& error,
                                              bool has_length)>& failed);

}  // namespace troupe
