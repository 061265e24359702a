// Tar archives, with whatever a test wants in them.
#pragma once

#include <array>
#include <cstdio>
#include <cstring>
#include <string>

namespace troupe {

/// Builds an archive member by member.
class TarWriter {
 public:
  /// `type`: '0' a file, '2' a link, '5' a folder.
  TarWriter& Add(const std::string& name, const std::string& bytes, char type = '0') {
    std::array<char, 512> header = {};
    const auto put = [&](std::size_t at, const std::string& text) {
      std::memcpy(header.data() + at, text.data(), text.size());
    };
    const auto octal = [](std::size_t number, int digits) {
      std::array<char, 32> text = {};
      std::snprintf(text.data(), text.size(), "%0*zo", digits, number);
      return std::string(text.data());
    };
    put(0, name.substr(0, 100));
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(124, octal(bytes.size(), 11));
    put(136, "00000000000");
    put(148, "        ");
    header[156] = type;
    if (type == '2') put(157, "/etc/passwd");
    put(257, "ustar");
    put(263, "00");
    std::size_t sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    put(148, octal(sum, 6) + std::string("\0 ", 2));
    bytes_.append(header.data(), header.size());
    bytes_ += bytes;
    bytes_.append((512 - bytes.size() % 512) % 512, '\0');
    return *this;
  }
  /// The archive with its end.
  std::string Bytes() const { return bytes_ + std::string(1024, '\0'); }
  const std::string& Unended() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace troupe
