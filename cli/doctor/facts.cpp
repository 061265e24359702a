#include "cli/doctor/facts.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <net/if.h>
#include <sched.h>
#include <sstream>
#include <stdexcept>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "cli/doctor/shared.hpp"
#include "cluster/address_class.hpp"
#include "cluster/socket.hpp"
#include "cluster/text.hpp"
#include "cluster/transport_choice.hpp"
#include "files/usable_cores.hpp"
#include "transport/descriptor.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Returns the first number in a file, nothing if there is none ("max").
std::optional<std::uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// Bytes that a control group may still allocate.
std::optional<std::uint64_t> LeftIn(const std::string& limit_file, const std::string& used_file) {
  const auto limit = NumberIn(limit_file);
  const auto used = NumberIn(used_file);
  // Version 1 writes a number near 2^63 for "no limit".
  if (!limit || !used || *limit > std::uint64_t{1} << 60) return std::nullopt;
  return *limit > *used ? *limit - *used : 0;
}

void WriteProbe(const std::string& directory) {
  std::string path = directory + "/.doctor-XXXXXX";
  const Descriptor file(mkostemp(path.data(), O_CLOEXEC));
  if (!file) {
    throw std::runtime_error(directory + ": cannot create a file: " + SystemWords(errno));
  }
  const char bytes[4096] = {};
  const bool written = write(file.get(), bytes, sizeof bytes) == static_cast<ssize_t>(sizeof bytes);
  const int error = errno;
  unlink(path.c_str());
  if (!written) throw std::runtime_error(directory + ": cannot write: " + SystemWords(error));
}

/// 0 if the system does not report it.
int MtuOf(const std::string& interface) {
  const Socket any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  if (!any || interface.size() >= sizeof request.ifr_name) return 0;
  std::memcpy(request.ifr_name, interface.c_str(), interface.size());
  return ioctl(any.fd(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

/// All of 127.0.0.0/8 is local, although interfaces list only one address of it.
std::string InterfaceHere(const std::string& digits) {
  return IsLoopback(digits) ? "lo" : InterfaceOf(digits);
}

}  // namespace

std::uint64_t TryDirectory(const std::string& directory) {
  const MadeFolders made(directory);
  WriteProbe(directory);
  return FreeBytes(directory).value_or(0);
}

std::optional<std::uint64_t> FreeBytes(const std::string& path) {
  std::error_code error;
  const fs::space_info space = fs::space(path, error);
  return error ? std::nullopt : std::optional<std::uint64_t>(space.available);
}

MemoryFacts ReadMemory() {
  MemoryFacts facts;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kib = 0;
    if (words >> name >> kib && name == "MemAvailable:") facts.available = kib << 10;
  }
  const auto keep_least = [&](std::optional<std::uint64_t> left) {
    if (left && (!facts.group_left || *left < *facts.group_left)) facts.group_left = left;
  };
  for (const std::string& folder : ControlGroupFolders()) {
    keep_least(LeftIn(folder + "/memory.max", folder + "/memory.current"));
  }
  keep_least(LeftIn("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                    "/sys/fs/cgroup/memory/memory.usage_in_bytes"));
  return facts;
}

std::optional<std::uint64_t> PtraceScope() {
  return NumberIn("/proc/sys/kernel/yama/ptrace_scope");
}

bool MayTrace() {
  constexpr unsigned kCapSysPtrace = 19;
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("CapEff:", 0) != 0) continue;
    return (std::strtoull(line.c_str() + 7, nullptr, 16) >> kCapSysPtrace & 1) != 0;
  }
  return false;
}

std::string TryReadingProcess() {
  std::uint64_t source = 1;
  std::uint64_t destination = 0;
  const iovec local{&destination, sizeof destination};
  const iovec remote{&source, sizeof source};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof source) return "";
  return SystemWords(errno);
}

ClockFacts ReadClock() {
  timex state{};
  const int answer = adjtimex(&state);
  if (answer < 0) return {false, SystemWords(errno)};
  return {answer != TIME_ERROR && (state.status & STA_UNSYNC) == 0, ""};
}

std::vector<std::string> NvidiaDevices() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/dev", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("nvidia", 0) != 0 || name.size() == 6) continue;
    if (std::isdigit(static_cast<unsigned char>(name[6])) != 0) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

NodeFacts LookUp(const ClusterNode& node) {
  NodeFacts facts;
  facts.name = node.name;
  facts.address = node.address;
  if (node.address.empty()) return facts;
  try {
    for (const ResolvedAddress& address : Resolve({node.address, 0})) {
      const std::string digits = InDigits(address);
      if (facts.resolved.empty()) facts.resolved = digits;
      facts.interface = InterfaceHere(digits);
      if (facts.here()) {
        facts.resolved = digits;
        facts.mtu = MtuOf(facts.interface);
        break;
      }
    }
  } catch (const std::runtime_error& e) {
    facts.error = e.what();
  }
  return facts;
}

bool IsHere(const std::string& host) { return LookUp({"", host, 0}).here(); }

std::string TryListening(const std::string& host, std::uint16_t port) {
  try {
    static_cast<void>(Socket::Listen({host, port}));
    return "";
  } catch (const SocketError& e) {
    return e.what();
  }
}

int FreePorts(const std::string& range, int enough) {
  const auto dash = range.find('-');
  const long first = std::strtol(range.c_str(), nullptr, 10);
  const long last =
      dash == std::string::npos ? first : std::strtol(range.c_str() + dash + 1, nullptr, 10);
  int free = 0;
  for (long port = first; port <= last && port <= 65'535 && free < enough; ++port) {
    if (TryListening("0.0.0.0", static_cast<std::uint16_t>(port)).empty()) ++free;
  }
  return free;
}

}  // namespace troupe
