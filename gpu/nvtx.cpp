#include "gpu/nvtx.hpp"

#include <nvtx3/nvToolsExt.h>

namespace troupe::gpu {

Range::Range(const std::string& name) { nvtxRangePushA(name.c_str()); }

Range::~Range() { nvtxRangePop(); }

}  // namespace troupe::gpu
