// The configurations that most tests change, and what the loader says of changes.
#pragma once

#include <string>
#include <vector>

#include "configs/loader.hpp"

namespace troupe {

/// 2 samples, 4 microbatches, dp 1.
inline const std::string kBase = "tests/configs/base.toml";

/// States what most files leave out, such as steps of the run and of the warm-up.
inline const std::string kExample = "tests/configs/example.toml";

/// All errors of the file with these values on top; "no error" if there is none.
inline std::string ErrorsOf(const std::string& path, const std::vector<std::string>& overrides) {
  try {
    LoadConfig(path, overrides);
  } catch (const ConfigErrors& errors) {
    return errors.what();
  }
  return "no error";
}
inline std::string ErrorsOf(const std::vector<std::string>& overrides) {
  return ErrorsOf(kBase, overrides);
}

}  // namespace troupe
