// The kernels themselves, compiled for the host.
#include "tests/gpu/simt/simt.hpp"

// After it.
#include "gpu/kernels/swiglu.cu"
