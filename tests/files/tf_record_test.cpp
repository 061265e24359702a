#include "files/tf_record.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace troupe {

TEST_CASE("CRC-32C gives the values of RFC 3720", "[files]") {
  CHECK(Crc32c("") == 0);
  CHECK(Crc32c("123456789") == 0xE3069283U);
  CHECK(Crc32c(std::string(32, '\0')) == 0x8A9136AAU);
  CHECK(Crc32c(std::string(32, '\xFF')) == 0x62A8AB43U);
  std::string ascending;
  for (char byte = 0; byte < 32; ++byte) ascending += byte;
  CHECK(Crc32c(ascending) == 0x46DD794EU);
}

TEST_CASE("a record is its length and its bytes, each with a checksum", "[files]") {
  // As tensorboard's RecordWriter writes b"troupe".
  using namespace std::string_literals;
  CHECK(TfRecord("troupe") ==
        "\x06\0\0\0\0\0\0\0"
        "\x73\x69\xd5\x37"
        "troupe"
        "\xb7\xbb\x1d\xeb"s);
  CHECK(TfRecord("").size() == 16);
}

}  // namespace troupe
