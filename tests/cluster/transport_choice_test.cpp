#include "cluster/transport_choice.hpp"

#include <catch2/catch.hpp>

using namespace troupe;

namespace {

const std::string kHere = "boot=a net=1 ipc=2 pid=3 uid=4";
const std::string kContainer = "boot=a net=9 ipc=2 pid=3 uid=4";
const std::string kElsewhere = "boot=b net=1 ipc=2 pid=3 uid=4";

}  // namespace

TEST_CASE("shared memory is UCX's, everything else goes over proven connections") {
  CHECK(ChooseCarrier("auto", kHere, kHere) == Carrier::kUcx);
  CHECK(ChooseCarrier("auto", kHere, kContainer) == Carrier::kProvenTcp);
  CHECK(ChooseCarrier("auto", kHere, kElsewhere) == Carrier::kProvenTcp);
  CHECK(ChooseUcxTransports("auto") == "posix,cma");
}

TEST_CASE("transports that the user names are UCX's, unless they end at this machine") {
  for (const std::string named : {"tcp", "rc,ud,posix,cma", "all"}) {
    CHECK(ChooseCarrier(named, kHere, kHere) == Carrier::kUcx);
    CHECK(ChooseCarrier(named, kHere, kElsewhere) == Carrier::kUcx);
    CHECK(ChooseUcxTransports(named) == named);
    CHECK(NamesTcp(named) == (named != "rc,ud,posix,cma"));
  }
  CHECK(ChooseCarrier("posix,sysv,cma", kHere, kHere) == Carrier::kUcx);
  CHECK(ChooseCarrier("posix,sysv,cma", kHere, kElsewhere) == Carrier::kProvenTcp);
  CHECK(ChooseCarrier("none", kHere, kHere) == Carrier::kProvenTcp);
}
