// The manifest of a checkpoint. As it carries its own digest, each input is also tried with the
// digest made right, as an attacker would.
#include <nlohmann/json.hpp>

#include "checkpoint/manifest.hpp"
#include "files/sha256.hpp"
#include "tests/fuzz/scratch.hpp"

namespace troupe::fuzz {
namespace {

void TryManifest(Bytes text) {
  TheScratch().Write("manifest.json", text);
  try {
    const auto manifest = ReadManifest(TheScratch().path());
    if (manifest) FirstFault(TheScratch().path(), *manifest);
  } catch (const std::runtime_error&) {
  }
}

}  // namespace
}  // namespace troupe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  fuzz::TryManifest({data, size});
  auto json = nlohmann::json::parse(data, data + size, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return 0;
  json.erase("sha256");
  try {
    json["sha256"] = Sha256Of(json.dump(1));
    const std::string text = json.dump(1) + "\n";
    fuzz::TryManifest({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  } catch (const nlohmann::json::type_error&) {  // text that is not UTF-8 cannot be written
  }
  return 0;
}
