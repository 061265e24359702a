// A network of its own for a test: hosts that are network namespaces, each with one interface on a
// common bridge, so that cables can be pulled and no other test has the ports.
#pragma once

#include <string>
#include <vector>

namespace troupe::testing {

class Network {
 public:
  /// Empty, or why this machine refuses: no `ip`, not root, no namespaces.
  static const std::string& Available();

  /// Hosts 0 .. num_hosts - 1. First removes what test programs that are dead by now have left
  /// behind. Throws std::runtime_error with the words of `ip`.
  explicit Network(int num_hosts);
  /// Kills whatever still runs on the hosts and removes them.
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// "10.77.0.1" of host 0.
  static std::string AddressOf(int host);
  /// The words that run `words` on `host`.
  std::vector<std::string> On(int host, const std::vector<std::string>& words) const;
  /// The name of its namespace.
  std::string NameOf(int host) const;

  /// Pulls the cable at the bridge's end: the host's own interface stays configured.
  void LinkDown(int host) const;
  void LinkUp(int host) const;
  /// From now on what `from` sends to `to` is lost; what `to` sends arrives.
  void CutOneWay(int from, int to) const;
  /// From now on packets of more than `bytes` from and to `host` are lost, without a word.
  void LimitPackets(int host, int bytes) const;

 private:
  std::string name_;  ///< what the names of its namespaces begin with
  int num_hosts_ = 0;
};

}  // namespace troupe::testing
