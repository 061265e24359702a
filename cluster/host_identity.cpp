#include "cluster/host_identity.hpp"

#include <fstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return file >> id ? id : "?";
}

std::string Namespace(const std::string& kind) {
  struct stat status {};
  if (stat(("/proc/self/ns/" + kind).c_str(), &status) != 0) return "?";
  return std::to_string(status.st_ino);
}

}  // namespace

std::string HostIdentity() {
  return "boot=" + BootId() + " net=" + Namespace("net") + " ipc=" + Namespace("ipc") +
         " pid=" + Namespace("pid") + " uid=" + std::to_string(getuid());
}

bool SameMachine(const std::string& a, const std::string& b) {
  static constexpr std::string_view kField = "boot=";
  const std::string boot = a.substr(0, a.find(' '));
  return boot.starts_with(kField) && boot.size() > kField.size() && boot != "boot=?" &&
         boot == b.substr(0, b.find(' '));
}

bool SharesMemory(const std::string& a, const std::string& b) {
  return SameMachine(a, b) && a == b && a.find('?') == std::string::npos;
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

}  // namespace troupe
