#include "tests/faults/network.hpp"

#include <atomic>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <stdlib.h>
#include <unistd.h>

#include "tests/faults/program.hpp"

namespace troupe::testing {
namespace {

/// Names are PREFIX PID-SERIAL-HOST: they show their owner.
constexpr const char* kPrefix = "troupe";

std::string UniqueName() {
  static std::atomic<int> serial = 0;
  return kPrefix + std::to_string(getpid()) + "-" + std::to_string(serial++) + "-";
}

std::vector<std::string> Namespaces() {
  std::istringstream list(Shell("ip netns list"));
  std::vector<std::string> names;
  for (std::string line; std::getline(list, line);) names.push_back(line.substr(0, line.find(' ')));
  return names;
}

void Remove(const std::string& name) {
  // A process killed here may take a moment; the namespace lives on without a name until then.
  Shell("for pid in $(ip netns pids " + name + "); do kill -KILL $pid || :; done; ip netns del " +
        name);
}

/// Of test programs that were killed before they could tidy up.
void RemoveStale() {
  for (const std::string& name : Namespaces()) {
    const std::string prefix = kPrefix;
    if (name.rfind(prefix, 0) != 0) continue;
    const pid_t owner = static_cast<pid_t>(std::strtol(name.c_str() + prefix.size(), nullptr, 10));
    if (owner <= 0 || IsAlive(owner)) continue;
    try {
      Remove(name);
    } catch (const std::runtime_error&) {
      // Another test program was faster.
    }
  }
}

/// The cable of `host` at the bridge's side.
std::string PortOf(int host) { return "port" + std::to_string(host); }

std::string WhyNot() {
  try {
    if (geteuid() != 0) return "network namespaces need root";
    const std::string name = UniqueName() + "try";
    Shell("ip netns add " + name + "\ntrap 'ip netns del " + name + "' EXIT\nip -n " + name +
          " link add bridge0 type bridge\nip -n " + name +
          " link add port0 type veth peer name port1\nip netns exec " + name + " true");
    return "";
  } catch (const std::runtime_error& e) {
    return std::string("this machine refuses network namespaces: ") + e.what();
  }
}

}  // namespace

const std::string& Network::Available() {
  static const std::string why_not = WhyNot();
  return why_not;
}

Network::Network(int num_hosts) : name_(UniqueName()), num_hosts_(num_hosts) {
  RemoveStale();
  const std::string hub = name_ + "hub";
  std::string script = "ip netns add " + hub + "\nip -n " + hub + " -batch - <<END\n" +
                       "link add bridge0 type bridge\nlink set bridge0 up\nEND\n";
  for (int host = 0; host < num_hosts; ++host) {
    const std::string name = NameOf(host);
    script += "ip netns add " + name + "\nip -n " + hub + " -batch - <<END\n" + "link add " +
              PortOf(host) + " type veth peer name eth0 netns " + name + "\nlink set " +
              PortOf(host) + " master bridge0 up\nEND\n" + "ip -n " + name + " -batch - <<END\n" +
              "link set lo up\naddr add " + AddressOf(host) + "/24 dev eth0\nlink set eth0 up\n" +
              "END\n";
  }
  try {
    Shell(script);
  } catch (...) {
    Shell("for name in $(ip netns list | cut -d' ' -f1 | grep '^" + name_ +
          "'); do ip netns del $name; done");
    throw;
  }
}

Network::~Network() {
  try {
    for (int host = 0; host < num_hosts_; ++host) Remove(NameOf(host));
    Remove(name_ + "hub");
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
  }
}

std::string Network::AddressOf(int host) { return "10.77.0." + std::to_string(host + 1); }

std::string Network::NameOf(int host) const { return name_ + std::to_string(host); }

std::vector<std::string> Network::On(int host, const std::vector<std::string>& words) const {
  // `ip netns exec` becomes the program, so that signals reach it; it also mounts a /sys that shows
  // this host's interfaces.
  std::vector<std::string> all = {"ip", "netns", "exec", NameOf(host)};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

void Network::LinkDown(int host) const {
  Shell("ip -n " + name_ + "hub link set " + PortOf(host) + " down");
}

void Network::LinkUp(int host) const {
  Shell("ip -n " + name_ + "hub link set " + PortOf(host) + " up");
}

void Network::CutOneWay(int from, int to) const {
  // To a card that no host has.
  Shell("ip -n " + NameOf(from) + " neigh replace " + AddressOf(to) +
        " lladdr 02:00:00:00:00:99 nud permanent dev eth0");
}

void Network::LimitPackets(int host, int bytes) const {
  Shell("ip -n " + name_ + "hub link set " + PortOf(host) + " mtu " + std::to_string(bytes));
  // Packets that the card would cut are not checked.
  for (int other = 0; other < num_hosts_; ++other)
    Shell("ip -n " + NameOf(other) + " link set eth0 gso_max_segs 1");
}

}  // namespace troupe::testing
