// The secret that the processes of one job share. Who has it belongs to the job.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// Fills `bytes` from the system's random source. Throws std::runtime_error when it has none.
void FillRandom(std::span<std::byte> bytes);

/// No error text of this class contains a key or a part of one.
class RunKey {
 public:
  static constexpr std::size_t kBytes = 32;
  using Digest = std::array<std::byte, 32>;

  /// A fresh one from the system's random source.
  static RunKey Generate();
  /// Reads 64 hex digits and at most one newline. Throws std::runtime_error naming the path and
  /// what is wrong: missing, not a key, not a plain file, readable or writable by others than its
  /// owner. A symbolic link is followed: what counts is the file it leads to.
  static RunKey ReadFile(const std::string& path);
  /// Creates `path` with mode 0600; it must not exist.
  void WriteFile(const std::string& path) const;

  /// A new descriptor, closed on exec, of memory that holds the key: for a child to inherit. No
  /// file has its bytes. Throws std::runtime_error.
  int ToDescriptor() const;
  /// The key of a descriptor that ToDescriptor has made, in whichever process; closes it. Throws
  /// std::runtime_error.
  static RunKey FromDescriptor(int descriptor);

  /// A key for one purpose only: what is made with it says nothing about this one. Any bytes may be
  /// a purpose. It is the HMAC of "troupe derived key: " and the purpose: with the same key, never
  /// Authenticate anything that begins so.
  RunKey Derive(std::string_view purpose) const;
  /// HMAC-SHA256.
  Digest Authenticate(std::span<const std::byte> message) const;

  friend bool operator==(const RunKey&, const RunKey&) = default;

 private:
  explicit RunKey(const std::array<std::byte, kBytes>& bytes) : bytes_(bytes) {}
  std::array<std::byte, kBytes> bytes_;
};

/// In time that does not depend on where they differ.
bool EqualDigests(const RunKey::Digest& a, const RunKey::Digest& b);

}  // namespace troupe
