// The secret shared by the processes of one job. Possession of it proves membership.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "transport/descriptor.hpp"

namespace troupe {

/// Fills `bytes` from the system's random source. Throws std::runtime_error if that fails.
void FillRandom(std::span<std::byte> bytes);

/// Error texts of this class never contain a key or a part of one.
class RunKey {
 public:
  static constexpr std::size_t kBytes = 32;
  using Digest = std::array<std::byte, 32>;

  /// A new key from the system's random source.
  static RunKey Generate();
  /// Reads 64 hex digits and at most one newline. Throws std::runtime_error naming the path and the
  /// problem: missing, not a key, not a plain file, or readable or writable by users other than its
  /// owner. Follows a symbolic link and checks its target.
  static RunKey ReadFile(const std::string& path);
  /// Creates `path` with mode 0600; it must not exist.
  void WriteFile(const std::string& path) const;

  /// The key of the feed machines of jobs with this run key. It proves nothing else.
  RunKey Feed() const { return Derive("feed"); }
  /// Reads the key of WriteFeedFile, or derives it from a run key. Throws as ReadFile.
  static RunKey ReadFeedFile(const std::string& path);
  /// Writes Feed() as WriteFile does, so that it does not pass for a run key.
  void WriteFeedFile(const std::string& path) const;

  /// Returns a new descriptor of memory that holds the key, for a child to inherit; closed on exec.
  /// The key is never in a file. Throws std::runtime_error.
  Descriptor ToDescriptor() const;
  /// Reads the key from a descriptor made by ToDescriptor, in any process, and closes it. Throws
  /// std::runtime_error.
  static RunKey FromDescriptor(int descriptor);

  /// A key for one purpose; it reveals nothing about this key. A purpose may be any bytes. It is
  /// the HMAC of "troupe derived key: " and the purpose: never use the same key to Authenticate a
  /// message that starts with that text.
  RunKey Derive(std::string_view purpose) const;
  /// HMAC-SHA256.
  Digest Authenticate(std::span<const std::byte> message) const;

  friend bool operator==(const RunKey&, const RunKey&) = default;

 private:
  explicit RunKey(const std::array<std::byte, kBytes>& bytes) : bytes_(bytes) {}
  void WriteWithMark(const std::string& path, std::string_view mark) const;
  std::array<std::byte, kBytes> bytes_;
};

/// Takes the same time wherever the two differ.
bool EqualDigests(const RunKey::Digest& a, const RunKey::Digest& b);

}  // namespace troupe
