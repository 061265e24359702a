// Process-wide settings of the numerical libraries.
#pragma once

#include <string>

namespace troupe {

/// The numerical libraries of this process.
struct Compute {
  std::string description;  ///< "libtorch 1.13, OpenBLAS with 1 thread, AVX2"
  std::string warning;      ///< one line when it will be slow, else empty
};

/// One thread per rank everywhere: ranks are the parallelism, and thread counts change the bits of
/// sums. The first statement of main(), before any tensor and any other thread.
Compute SetupCompute();

/// OpenBLAS picks its kernels by CPU model when it is loaded, and takes 20 year old ones for a
/// model it does not know. Where that happened on a CPU with AVX2 or AVX-512, starts the program
/// anew, once, with OPENBLAS_CORETYPE set; otherwise, or when the variable is set already, returns.
/// To be called before anything else in main(), with its argv.
void RestartWithBestKernels(char* const argv[]);

/// From now on the calling thread computes with `threads`. For a process that runs no ranks.
void ComputeWithThreads(int threads);

/// The same as SetupCompute for the calling thread; the factory does it for every device thread.
void SetupComputeThread();

}  // namespace troupe
