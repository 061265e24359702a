// SHA-256 of bytes that come piece by piece: what tells a damaged file from the one that was
// written.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace troupe {

/// FIPS 180-4, by OpenSSL. Every call throws std::runtime_error when the library refuses.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(std::span<const std::byte> bytes);
  /// 64 digits, 0-9 and a-f, of all bytes so far. Called once, last.
  std::string Hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// Of one text.
std::string Sha256Of(const std::string& text);

/// Whether `text` is what Hex gives.
bool IsSha256(const std::string& text);

}  // namespace troupe
