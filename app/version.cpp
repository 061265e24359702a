#include "app/version.hpp"

#include <caf/config.hpp>

#include "modules/device/backend.hpp"
#include "modules/torch/compute.hpp"
#include "modules/torch/cuda/torch_cuda.hpp"

namespace troupe {

std::string VersionText() {
  const std::string commit = TROUPE_COMMIT;
  return std::string("troupe " TROUPE_VERSION) + (commit.empty() ? "" : " (" + commit + ")") +
         ", CAF " + std::to_string(CAF_MAJOR_VERSION) + "." + std::to_string(CAF_MINOR_VERSION) +
         "." + std::to_string(CAF_PATCH_VERSION) + ", " + SetupCompute().description;
}

std::string GpuText() {
  const std::string cuda = TROUPE_CUDA_VERSION;
  const std::string nccl = TROUPE_NCCL_VERSION;
  std::string text = "GPU parts: " + (cuda.empty() ? "no GPU code" : "our code by nvcc " + cuda) +
                     ", " + (nccl.empty() ? "no NCCL" : "NCCL " + nccl) + ", libtorch " +
                     (TorchHasCuda() ? "with" : "without") + " CUDA\n";
  const std::string missing = MissingFor(Backend::kCuda);
  return text + "backend \"cuda\": " +
         (missing.empty() ? "in this build; run `troupe doctor` to look for a device"
                          : "not in this build: " + missing) +
         "\n";
}

}  // namespace troupe
