#include "modules/held_files.hpp"

#include <cstring>
#include <stdexcept>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

Buffer BytesWith(HeldFiles& held, const std::string& text) {
  Buffer bytes = held.Allocate(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::string TextOf(const HeldFiles& held, const std::string& path) {
  const auto file = held.Open(path);
  if (file == nullptr) return "none";
  std::string text(file->size(), '\0');
  file->Read(0, text.data(), text.size());
  return text;
}

}  // namespace

TEST_CASE("a process holds files by folder and name", "[modules]") {
  HeldFiles held;
  held.Put("/run/memory/a", {"own", BytesWith(held, "12345")});
  held.Put("/run/memory/a", {"other", BytesWith(held, "678")});
  CHECK(TextOf(held, "/run/memory/a/own") == "12345");
  CHECK(TextOf(held, "/run/memory/a/other") == "678");
  CHECK(TextOf(held, "/run/memory/a/third") == "none");
  CHECK(TextOf(held, "/run/memory/a/manifest.json") == "none");
  CHECK(TextOf(held, "/run/memory/b/own") == "none");
  CHECK(TextOf(held, "own") == "none");
  CHECK(held.num_bytes() == 8);
  CHECK(held.BytesOf("/run/memory/a", "own").num_bytes() == 5);
  CHECK_THROWS_WITH(held.BytesOf("/run/memory/b", "own"),
                    "/run/memory/b/own: not held by this process");
  const auto checkpoints = held.Checkpoints();
  REQUIRE(checkpoints.size() == 1);
  CHECK(checkpoints[0].manifest.empty());
  CHECK(checkpoints[0].files == std::vector<std::string>{"other", "own"});
  char byte = 0;
  held.Open("/run/memory/a/own")->Read(4, &byte, 1);
  CHECK(byte == '5');
  CHECK_THROWS_AS(held.Open("/run/memory/a/own")->Read(4, &byte, 2), std::runtime_error);
}

TEST_CASE("a complete state replaces all others, whose memory is used again", "[modules]") {
  HeldFiles held;
  held.Put("/a", {"own", BytesWith(held, "12345")});
  held.Complete("/a", "{}");
  CHECK(TextOf(held, "/a/manifest.json") == "{}");
  const std::byte* const memory = held.BytesOf("/a", "own").data();
  const auto still_read = held.Open("/a/own");
  held.Put("/b", {"own", BytesWith(held, "abcde")});
  CHECK(TextOf(held, "/a/own") == "12345");  // until the next is complete
  held.Complete("/b", "{}");
  CHECK(TextOf(held, "/a/own") == "none");
  std::string text(5, ' ');
  CHECK(held.Allocate(5).data() != memory);  // someone still reads it
  still_read->Read(0, text.data(), 5);
  CHECK(text == "12345");
  held.Put("/c", {"own", BytesWith(held, "fghij")});
  const std::byte* const second = held.BytesOf("/b", "own").data();
  held.Complete("/c", "{}");
  CHECK(held.Allocate(4).data() != second);
  CHECK(held.Allocate(5).data() == second);
  held.Clear();
  CHECK(held.Checkpoints().empty());
  CHECK(held.num_bytes() == 0);
}

TEST_CASE("a state that was chosen is kept alone", "[modules]") {
  HeldFiles held;
  held.Put("/a", {"own", BytesWith(held, "1")});
  held.Complete("/a", "{}");
  held.Put("/b", {"own", BytesWith(held, "2")});
  held.KeepOnly("/a");
  CHECK(TextOf(held, "/a/own") == "1");
  CHECK(TextOf(held, "/a/manifest.json") == "{}");
  CHECK(TextOf(held, "/b/own") == "none");
}

}  // namespace troupe
