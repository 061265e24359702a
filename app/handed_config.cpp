#include "app/handed_config.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace troupe {
namespace {

[[noreturn]] void ThrowHandingError() {
  throw std::runtime_error(std::string("cannot hand the configuration to children: ") +
                           std::strerror(errno));
}

LoadedConfig LoadHanded(const std::string& path, int descriptor,
                        const std::vector<std::string>& overrides = {}) {
  try {
    // Opened anew: siblings share the position of the descriptor.
    LoadedConfig loaded = LoadConfig("/proc/self/fd/" + std::to_string(descriptor), overrides);
    std::erase_if(loaded.origins, [](const auto& origin) { return !origin.second.place.argument; });
    loaded.remarks.clear();
    return loaded;
  } catch (const ConfigErrors& e) {
    std::vector<ConfigError> errors = e.errors();
    for (ConfigError& error : errors) error.place = {.file = path};
    throw ConfigErrors(std::move(errors));
  }
}

}  // namespace

Descriptor HandedConfig(const std::string& resolved_toml) {
  Descriptor file(memfd_create("troupe configuration", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) ThrowHandingError();
  for (std::size_t done = 0; done < resolved_toml.size();) {
    const ssize_t n = write(file.get(), resolved_toml.data() + done, resolved_toml.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ThrowHandingError();
    done += static_cast<std::size_t>(n);
  }
  constexpr int kNoChange = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (fcntl(file.get(), F_ADD_SEALS, kNoChange) != 0) ThrowHandingError();
  return file;
}

LoadedConfig LoadConfigOf(const ConfigArguments& arguments, int descriptor) {
  if (descriptor >= 0) {
    const Descriptor file(descriptor);
    return LoadHanded(arguments.path, descriptor);
  }
  if (!arguments.text.empty()) {
    const Descriptor text = HandedConfig(arguments.text);
    return LoadHanded(arguments.path, text.get(), arguments.overrides);
  }
  return LoadConfig(arguments.path, arguments.overrides);
}

}  // namespace troupe
