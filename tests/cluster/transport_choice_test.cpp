#include "cluster/transport_choice.hpp"

#include <catch2/catch.hpp>

using namespace troupe;

namespace {

const std::string kHere = "boot=a net=1 ipc=2 pid=3 uid=4";
const std::string kContainer = "boot=a net=9 ipc=2 pid=3 uid=4";
const std::string kElsewhere = "boot=b net=1 ipc=2 pid=3 uid=4";

}  // namespace

TEST_CASE("shared memory is UCX's, everything else goes over proven connections") {
  for (const TransportTcp tcp : {TransportTcp::kAuto, TransportTcp::kProven}) {
    const TransportConfig transport{.tcp = tcp};
    CHECK(ChooseCarrier(transport, kHere, kHere) == Carrier::kUcx);
    CHECK(ChooseCarrier(transport, kHere, kContainer) == Carrier::kProvenTcp);
    CHECK(ChooseCarrier(transport, kHere, kElsewhere) == Carrier::kProvenTcp);
    CHECK(ChooseUcxTransports(transport, {kHere, kContainer, kElsewhere}) == "posix,cma");
  }
}

TEST_CASE("UCX carries TCP where the configuration says so, over TCP alone between containers") {
  const TransportConfig transport{.tcp = TransportTcp::kUcx};
  CHECK(ChooseCarrier(transport, kHere, kElsewhere) == Carrier::kUcx);
  CHECK(ChooseUcxTransports(transport, {kHere, kHere}) == "posix,cma");
  CHECK(ChooseUcxTransports(transport, {kHere, kHere, kElsewhere}) == "posix,cma,tcp");
  CHECK(ChooseUcxTransports(transport, {kHere, kContainer, kElsewhere}) == "tcp");
}

TEST_CASE("transports that the user names are UCX's, unless they end at this machine") {
  for (const char* named : {"tcp", "rc,ud,posix,cma", "all"}) {
    const TransportConfig transport{.ucx_tls = named};
    CHECK(ChooseCarrier(transport, kHere, kElsewhere) == Carrier::kUcx);
    CHECK(ChooseUcxTransports(transport, {kHere, kElsewhere}) == named);
  }
  const TransportConfig within{.ucx_tls = "posix,sysv,cma"};
  CHECK(ChooseCarrier(within, kHere, kHere) == Carrier::kUcx);
  CHECK(ChooseCarrier(within, kHere, kElsewhere) == Carrier::kProvenTcp);
  const TransportConfig none{.ucx_tls = "none"};
  CHECK(ChooseCarrier(none, kHere, kHere) == Carrier::kProvenTcp);
}
