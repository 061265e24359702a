#include <CLI/CLI.hpp>
#include <iostream>

#include <caf/config.hpp>

#include "cli/commands.hpp"
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

/// What of the GPU backend is in this build, and whether that is enough to run it.
static std::string GpuText() {
  const std::string cuda = TROUPE_CUDA_VERSION;
  const std::string nccl = TROUPE_NCCL_VERSION;
  std::string text = "GPU parts: " + (cuda.empty() ? "no GPU code" : "our code by nvcc " + cuda) +
                     ", " + (nccl.empty() ? "no NCCL" : "NCCL " + nccl) + ", libtorch " +
                     (TorchHasCuda() ? "with" : "without") + " CUDA\n";
  const std::string missing = MissingFor(Backend::kCuda);
  return text + "backend \"cuda\": " +
         (missing.empty() ? "in this build; whether a device is there, `troupe doctor` says"
                          : "not in this build: " + missing) +
         "\n";
}

void AddVersion(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand("version",
                                  "Print versions of troupe and its libraries, what parts for GPUs "
                                  "it was built\nwith, and whether it can use them.\n"
                                  "Exit code: 0.");
  verb->callback([&command] {
    command = [] {
      std::cout << VersionText() << '\n' << GpuText();
      return kExitDone;
    };
  });
}

}  // namespace troupe
