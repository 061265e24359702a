#include "cluster/run_key.hpp"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/cluster/scratch_folder.hpp"

using namespace troupe;
using Catch::Matchers::Contains;

namespace {

using testing::ScratchFolder;

std::string Hex(const RunKey::Digest& digest) {
  std::ostringstream text;
  for (const std::byte b : digest) {
    text.width(2);
    text.fill('0');
    text << std::hex << std::to_integer<unsigned>(b);
  }
  return text.str();
}

void WriteText(const std::string& path, const std::string& text,
               std::filesystem::perms mode = std::filesystem::perms::owner_read |
                                             std::filesystem::perms::owner_write) {
  std::ofstream(path) << text;
  std::filesystem::permissions(path, mode);
}

std::string ErrorOf(const std::string& path) {
  try {
    RunKey::ReadFile(path);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

const std::string kSixtyFour = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";

}  // namespace

TEST_CASE("a key in memory is read by its descriptor, once by each who inherits it") {
  const RunKey key = RunKey::Generate();
  const int memory = key.ToDescriptor().Release();
  CHECK(fcntl(memory, F_GETFD) == FD_CLOEXEC);
  const int inherited = dup(memory);
  CHECK(RunKey::FromDescriptor(memory) == key);
  CHECK(RunKey::FromDescriptor(inherited) == key);
  CHECK_THROWS_WITH(RunKey::FromDescriptor(inherited),
                    Contains("run key descriptor") && Contains("cannot be read"));
  CHECK(write(key.ToDescriptor().get(), "x", 1) == -1);  // sealed
}

TEST_CASE("a key that is written is the key that is read") {
  const ScratchFolder folder;
  const RunKey key = RunKey::Generate();
  key.WriteFile(folder.File("key"));
  CHECK(RunKey::ReadFile(folder.File("key")) == key);
  CHECK_FALSE(RunKey::Generate() == key);
  using std::filesystem::perms;
  CHECK(std::filesystem::status(folder.File("key")).permissions() ==
        (perms::owner_read | perms::owner_write));
  CHECK(std::filesystem::file_size(folder.File("key")) == 65);
}

TEST_CASE("a key file is never written over") {
  const ScratchFolder folder;
  WriteText(folder.File("key"), "mine");
  CHECK_THROWS_WITH(RunKey::Generate().WriteFile(folder.File("key")), Contains("file exists"));
  std::ifstream file(folder.File("key"));
  std::string text;
  file >> text;
  CHECK(text == "mine");
}

TEST_CASE("a key file is read with and without its newline and through a link") {
  const ScratchFolder folder;
  WriteText(folder.File("a"), kSixtyFour);
  WriteText(folder.File("b"), kSixtyFour + "\n");
  std::filesystem::create_symlink(folder.File("b"), folder.File("c"));
  CHECK(RunKey::ReadFile(folder.File("a")) == RunKey::ReadFile(folder.File("b")));
  CHECK(RunKey::ReadFile(folder.File("a")) == RunKey::ReadFile(folder.File("c")));
}

TEST_CASE("a file that is no key, or not only its owner's, is refused by its path") {
  const ScratchFolder folder;
  using std::filesystem::perms;
  const perms owner = perms::owner_read | perms::owner_write;
  CHECK_THAT(ErrorOf(folder.File("none")), Contains("no such file") && Contains(folder.File("")));
  WriteText(folder.File("group"), kSixtyFour, owner | perms::group_read);
  CHECK_THAT(ErrorOf(folder.File("group")), Contains("by others than its owner"));
  WriteText(folder.File("other"), kSixtyFour, owner | perms::others_write);
  CHECK_THAT(ErrorOf(folder.File("other")), Contains("by others than its owner"));
  WriteText(folder.File("short"), kSixtyFour.substr(1));
  CHECK_THAT(ErrorOf(folder.File("short")), Contains("expected 64 hex digits, got 63"));
  WriteText(folder.File("two"), kSixtyFour + "\n\n");
  CHECK_THAT(ErrorOf(folder.File("two")), Contains("got 65 characters"));
  WriteText(folder.File("letter"), "x" + kSixtyFour.substr(1));
  CHECK_THAT(ErrorOf(folder.File("letter")), Contains("another character"));
  WriteText(folder.File("long"), std::string(4097, '0'));
  CHECK_THAT(ErrorOf(folder.File("long")), Contains("got 4097 bytes"));
  WriteText(folder.File("empty"), "");
  CHECK_THAT(ErrorOf(folder.File("empty")), Contains("got 0 characters"));
  CHECK_THAT(ErrorOf(folder.File("")), Contains("expected a plain file"));
  for (const std::string name : {"group", "other", "short", "two", "letter"})
    CHECK_THAT(ErrorOf(folder.File(name)), !Contains("445566"));
}

TEST_CASE("authentication is HMAC-SHA256") {
  // RFC 4231, test case 1, its key padded with zeros to 32 bytes, which HMAC itself would do.
  const ScratchFolder folder;
  std::string key;
  for (int i = 0; i < 20; ++i) key += "0b";
  WriteText(folder.File("key"), key + std::string(24, '0'));
  const std::string message = "Hi There";
  CHECK(Hex(RunKey::ReadFile(folder.File("key")).Authenticate(std::as_bytes(std::span(message)))) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

TEST_CASE("keys for different purposes are different and the same every time") {
  const RunKey key = RunKey::Generate();
  CHECK(key.Derive("join") == key.Derive("join"));
  CHECK_FALSE(key.Derive("join") == key.Derive("tls"));
  CHECK_FALSE(key.Derive("join") == key);
  CHECK_FALSE(key.Derive("join") == RunKey::Generate().Derive("join"));
}

TEST_CASE("digests are equal only if every bit is") {
  const std::string message = "a";
  const RunKey::Digest digest = RunKey::Generate().Authenticate(std::as_bytes(std::span(message)));
  CHECK(EqualDigests(digest, digest));
  for (std::size_t bit = 0; bit < 256; ++bit) {
    RunKey::Digest other = digest;
    other[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    CHECK_FALSE(EqualDigests(digest, other));
  }
}
