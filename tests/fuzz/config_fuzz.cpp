// A configuration file, and --set arguments after zero bytes.
#include <algorithm>

#include "configs/loader.hpp"
#include "tests/fuzz/scratch.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const fuzz::Bytes all(data, size);
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= size;) {
    const std::size_t end =
        static_cast<std::size_t>(std::find(all.begin() + at, all.end(), 0) - all.begin());
    parts.push_back(fuzz::AsText(all.subspan(at, end - at)));
    at = end + 1;
  }
  const std::string text = parts.front();
  parts.erase(parts.begin());
  const std::string path = fuzz::TheScratch().Write(
      "config.toml", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  try {
    const LoadedConfig loaded = LoadConfig(path, parts);
    // What was understood can be written down and understood again.
    const std::string& resolved = loaded.resolved_toml;
    const std::string again = fuzz::TheScratch().Write(
        "resolved.toml", {reinterpret_cast<const std::uint8_t*>(resolved.data()), resolved.size()});
    fuzz::Require(LoadConfig(again).resolved_toml == resolved);
    Explain(loaded, "schedule");
  } catch (const ConfigErrors&) {
  }
  return 0;
}
