// Starts, and thereby shows that the CUDA backend has all it refers to.
#include <cstdio>
#include <exception>

#include "modules/device/cuda_backend.hpp"

int main() {
  troupe::Config config;
  config.cluster.backend = troupe::Backend::kCuda;
  try {
    troupe::MakeCuda(config, {}, 0, std::make_shared<troupe::AbortSignal>(), {});
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
  }
  return 0;
}
