#include "cluster/address_class.hpp"

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("loopback addresses are those that never leave the machine") {
  for (const char* host : {"127.0.0.1", "127.0.0.0", "127.255.255.255", "::1", "0:0:0:0:0:0:0:1",
                           "::ffff:127.0.0.1", "::ffff:7f00:1"}) {
    INFO(host);
    CHECK(IsLoopback(host));
    CHECK_FALSE(IsPrivate(host));
  }
  for (const char* host : {"126.255.255.255", "128.0.0.0", "::", "::2", "0.0.0.0", "1.0.0.127",
                           "::127.0.0.1", "127.1", "127.0.0.1.", "0177.0.0.1", " 127.0.0.1"}) {
    INFO(host);
    CHECK_FALSE(IsLoopback(host));
  }
}

TEST_CASE("private addresses are those that the Internet does not route") {
  for (const char* host :
       {"10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0",
        "192.168.255.255", "169.254.0.1", "fc00::", "fdff:ffff::1", "fe80::1", "fe80::1%eth0",
        "febf::1", "::ffff:10.1.2.3", "::ffff:192.168.1.1"}) {
    INFO(host);
    CHECK(IsPrivate(host));
    CHECK_FALSE(IsLoopback(host));
  }
  for (const char* host : {"9.255.255.255",
                           "11.0.0.0",
                           "172.15.255.255",
                           "172.32.0.0",
                           "192.167.255.255",
                           "192.169.0.0",
                           "169.253.255.255",
                           "169.255.0.0",
                           "100.64.0.1",
                           "8.8.8.8",
                           "0.0.0.0",
                           "fbff::1",
                           "fe00::1",
                           "fec0::1",
                           "fe7f::1",
                           "2001:db8::1",
                           "::",
                           "::ffff:8.8.8.8",
                           "::10.0.0.1",
                           "1::ffff:10.0.0.1",
                           "255.255.255.255"}) {
    INFO(host);
    CHECK_FALSE(IsPrivate(host));
    CHECK_FALSE(IsLoopback(host));
  }
}

TEST_CASE("a name is neither loopback nor private before it is resolved") {
  for (const char* host : {"localhost", "n0", "10.0.0.1.example.org", "10.0.0", "[::1]", "", "%",
                           "10.0.0.1%eth0", "10.0.0.1:7420", "fd.example", "127.0.0.1x"}) {
    INFO(host);
    CHECK_FALSE(IsLoopback(host));
    CHECK_FALSE(IsPrivate(host));
  }
}

TEST_CASE(
    "connections are encrypted unless they stay on site or the configuration says otherwise") {
  CHECK_FALSE(TlsIsOn(ClusterTls::kAuto, "127.0.0.1"));
  CHECK_FALSE(TlsIsOn(ClusterTls::kAuto, "fd00::1"));
  CHECK(TlsIsOn(ClusterTls::kAuto, "8.8.8.8"));
  CHECK(TlsIsOn(ClusterTls::kAuto, "n0.example.org"));
  CHECK(TlsIsOn(ClusterTls::kOn, "127.0.0.1"));
  CHECK_FALSE(TlsIsOn(ClusterTls::kOff, "8.8.8.8"));
}
