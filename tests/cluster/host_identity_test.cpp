#include "cluster/host_identity.hpp"

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("a process is on its own machine and shares its own memory") {
  const std::string self = HostIdentity();
  CHECK(self == HostIdentity());
  CHECK(self.find('?') == std::string::npos);
  CHECK(SameMachine(self, self));
  CHECK(SharesMemory(self, self));
}

TEST_CASE("another namespace or user is the same machine without shared memory") {
  const std::string self = "boot=a-b net=1 ipc=2 pid=3 uid=4";
  for (const std::string other :
       {"boot=a-b net=9 ipc=2 pid=3 uid=4", "boot=a-b net=1 ipc=9 pid=3 uid=4",
        "boot=a-b net=1 ipc=2 pid=9 uid=4", "boot=a-b net=1 ipc=2 pid=3 uid=9"}) {
    CHECK(SameMachine(self, other));
    CHECK_FALSE(SharesMemory(self, other));
  }
}

TEST_CASE("another boot id is another machine, an unknown one equal to nothing") {
  CHECK_FALSE(SameMachine("boot=a net=1", "boot=b net=1"));
  CHECK_FALSE(SameMachine("boot=? net=1", "boot=? net=1"));
  CHECK_FALSE(SameMachine("", ""));
  CHECK_FALSE(SameMachine("boot= net=1", "boot= net=1"));
  CHECK_FALSE(SharesMemory("boot=a net=? ipc=1", "boot=a net=? ipc=1"));
}
