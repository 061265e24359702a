#include "files/sha256.hpp"

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "tests/checkpoint/temporary_directory.hpp"

namespace troupe {
namespace {

// FIPS 180-4, the examples of NIST's "Secure Hash Standard Validation System".
TEST_CASE("SHA-256 gives the sums of the standard's examples", "[files]") {
  CHECK(Sha256Of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(Sha256Of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(Sha256Of(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("a SHA-256 does not depend on how its bytes are cut", "[files]") {
  Sha256 sum;
  for (const std::string piece : {"a", "", "bc"}) sum.Update(std::as_bytes(std::span(piece)));
  CHECK(sum.Hex() == Sha256Of("abc"));
}

TEST_CASE("the SHA-256 of a file is that of its bytes, and a missing file is an error", "[files]") {
  const TemporaryDirectory directory;
  const std::string path = directory.File("a");
  const std::string text(3'000'000, 'b');  // several reads
  std::ofstream(path) << text;
  CHECK(Sha256OfFile(path) == Sha256Of(text));
  std::filesystem::remove(path);
  CHECK_THROWS_WITH(Sha256OfFile(path), Catch::StartsWith(path + ": cannot read"));
}

TEST_CASE("what is no SHA-256 in lower-case hex is known", "[files]") {
  CHECK(IsSha256(Sha256Of("")));
  CHECK_FALSE(IsSha256(Sha256Of("").substr(1)));
  CHECK_FALSE(IsSha256(std::string(64, 'A')));
  CHECK_FALSE(IsSha256(std::string(64, ' ')));
}

}  // namespace
}  // namespace troupe
