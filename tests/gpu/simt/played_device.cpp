// All tests of tests/gpu run on a device that the host plays.
#include <optional>

#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <catch2/catch.hpp>

#include "tests/gpu/emulated/machine.hpp"

namespace troupe {
namespace {

class PlayedDevice : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;
  void testRunStarting(const Catch::TestRunInfo&) override { machine_.emplace(); }
  void testRunEnded(const Catch::TestRunStats&) override { machine_.reset(); }

 private:
  std::optional<emulated::Machine> machine_;
};

CATCH_REGISTER_LISTENER(PlayedDevice)

}  // namespace
}  // namespace troupe
