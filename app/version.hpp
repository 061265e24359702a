#pragma once

#include <string>

namespace troupe {

/// "troupe 0.1.0 (commit), CAF 0.17.6, libtorch ..."
std::string VersionText();

/// The GPU parts in this build, and whether they suffice for backend "cuda"; two lines.
std::string GpuText();

}  // namespace troupe
