// SHA-256 of data that arrives in pieces. Tells a damaged file from the original.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace troupe {

/// FIPS 180-4, computed by OpenSSL. Every call throws std::runtime_error if the library fails.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(std::span<const std::byte> bytes);
  /// The digest of all bytes so far as 64 digits, 0-9 and a-f. Call it once, last.
  std::string Hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// The digest of one text.
std::string Sha256Of(const std::string& text);

/// The digest of a file's content; nothing, and errno is set, if the file cannot be opened.
std::optional<std::string> Sha256OfFile(const std::string& path);

/// Whether `text` has the form of Hex()'s result.
bool IsSha256(const std::string& text);

}  // namespace troupe
