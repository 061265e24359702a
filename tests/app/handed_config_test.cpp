#include "app/handed_config.hpp"

#include <filesystem>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// As a child that inherits it.
LoadedConfig LoadInherited(const Descriptor& handed) {
  return LoadConfigOf({"configs/user.toml", {}}, dup(handed.get()));
}

}  // namespace

TEST_CASE("children load the configuration that their launcher has loaded", "[app]") {
  int num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("configs")) {
    if (entry.path().extension() != ".toml") continue;
    ++num_files;
    INFO(entry.path());
    const LoadedConfig loaded = LoadConfig(entry.path().string());
    const Descriptor handed = HandedConfig(loaded.resolved_toml);
    for (int child = 0; child < 2; ++child) {
      const LoadedConfig inherited = LoadInherited(handed);
      CHECK(inherited.config == loaded.config);
      CHECK(inherited.resolved_toml == loaded.resolved_toml);
      CHECK(inherited.remarks.empty());
    }
  }
  CHECK(num_files > 5);
}

TEST_CASE("an error in a handed configuration names the user's file", "[app]") {
  const Descriptor handed = HandedConfig("schema = 1\nno_key = 2\n");
  try {
    LoadInherited(handed);
    FAIL("expected ConfigErrors");
  } catch (const ConfigErrors& e) {
    for (const ConfigError& error : e.errors()) {
      CHECK(error.place.file == "configs/user.toml");
      CHECK(error.place.line == 0);
    }
  }
}

}  // namespace troupe
