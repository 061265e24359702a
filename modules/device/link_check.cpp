// Links the CUDA backend, which shows that nothing it refers to is missing.
#include <cstdio>
#include <exception>

#include "modules/device/backend.hpp"

int main() {
  troupe::Config config;
  config.cluster.backend = troupe::Backend::kCuda;
  try {
    troupe::MakeCudaBackend(config, {}, 0, std::make_shared<troupe::AbortSignal>(), {});
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
  }
  return 0;
}
