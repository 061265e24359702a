#include "modules/torch/compute.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <torch/version.h>
#include <unistd.h>

#include "modules/torch/versions.hpp"

namespace troupe {
namespace {

/// The vector instructions the library chose, which the last bits of results depend on. Our own loops
/// choose by the CPU alone (score_kernels.cpp).
std::string CpuCapability() {
  const std::string config = at::show_config();
  const std::string key = "CPU capability usage: ";
  const auto begin = config.find(key);
  if (begin == std::string::npos) return "unknown CPU capability";
  return config.substr(begin + key.size(), config.find('\n', begin) - begin - key.size());
}

/// MKL, which PyTorch's own packages bring, follows at::set_num_threads.
std::string BlasName(bool open_blas) {
  if (open_blas) return "OpenBLAS with 1 thread";
  return at::hasMKL() ? "MKL with 1 thread" : "unknown BLAS";
}

/// The core type whose kernels OpenBLAS should use but does not; empty when all is well.
std::string BetterCoreType() {
  using CoreName = char* (*)();
  auto* const core_name = reinterpret_cast<CoreName>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (!core_name || std::string(core_name()) != "Prescott") return "";
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) return "SKYLAKEX";
  return __builtin_cpu_supports("avx2") ? "HASWELL" : "";
}

}  // namespace

void RestartWithBestKernels(char* const argv[]) {
  const std::string core = BetterCoreType();
  if (core.empty() || std::getenv("OPENBLAS_CORETYPE")) return;
  setenv("OPENBLAS_CORETYPE", core.c_str(), 0);
  execv("/proc/self/exe", argv);  // returns only when it failed: slower, but right
}

/// Sets the threads of OpenBLAS; returns whether the BLAS is that. at::set_num_threads does not reach
/// it, and its environment variable is read when it is loaded, which was before main().
static bool SetBlasThreads(int threads) {
  using SetThreads = void (*)(int);
  auto* const set_threads =
      reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set_threads) set_threads(threads);
  return set_threads != nullptr;
}

void ComputeWithThreads(int threads) {
  SetBlasThreads(threads);
  at::set_num_threads(threads);
}

Compute SetupCompute() {
  const bool open_blas = SetBlasThreads(1);
  SetupComputeThread();

  Compute compute;
  compute.description = "libtorch " + std::to_string(TORCH_VERSION_MAJOR) + "." +
                        std::to_string(TORCH_VERSION_MINOR) + ", " + BlasName(open_blas) + ", " +
                        CpuCapability();
  if (!open_blas && !at::hasMKL()) {
    compute.warning =
        "BLAS: expected OpenBLAS, found another library; the reference BLAS is 20 times slower "
        "(install libopenblas0-pthread)";
  }
  const std::string better = BetterCoreType();
  if (!better.empty()) {
    compute.warning = "OpenBLAS: expected " + better +
                      " kernels for this CPU, it chose Prescott's, which are several times slower "
                      "(set OPENBLAS_CORETYPE=" +
                      better + ")";
  }
  return compute;
}

void SetupComputeThread() {
  at::set_num_threads(1);
  RunBackwardOnCallingThread();
  // A denormal operand makes an instruction 17 times slower; gradients of unused rows are full of
  // them once Adam's moments decay.
  at::globalContext().setFlushDenormal(true);
}

}  // namespace troupe
