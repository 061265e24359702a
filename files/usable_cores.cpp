#include "files/usable_cores.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <unistd.h>

namespace troupe {

std::vector<std::string> ControlGroupFolders() {
  std::vector<std::string> folders;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    for (std::filesystem::path path = line.substr(3); path.has_relative_path();
         path = path.parent_path()) {
      folders.push_back("/sys/fs/cgroup" + path.string());
    }
  }
  folders.push_back("/sys/fs/cgroup");
  return folders;
}

int UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  int count = sched_getaffinity(0, sizeof cores, &cores) == 0
                  ? CPU_COUNT(&cores)
                  : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  for (const std::string& folder : ControlGroupFolders()) {
    std::ifstream file(folder + "/cpu.max");
    double quota = 0.0;
    double period = 0.0;
    if (file >> quota >> period && period > 0.0) {
      count = std::min(count, static_cast<int>(std::ceil(quota / period)));
    }
  }
  return std::max(count, 1);
}

}  // namespace troupe
