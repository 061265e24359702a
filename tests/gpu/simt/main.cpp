// All tests of tests/gpu, on a device that the host plays.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "tests/gpu/emulated/machine.hpp"

int main(int argc, char** argv) {
  const troupe::emulated::Machine machine;
  return Catch::Session().run(argc, argv);
}
