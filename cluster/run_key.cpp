#include "cluster/run_key.hpp"

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/text.hpp"

namespace troupe {
namespace {

constexpr std::size_t kLongestFile = 4096;
/// Before the digits of a feed key.
constexpr std::string_view kFeedMark = "feed ";

[[noreturn]] void Fail(const std::string& path, const std::string& problem) {
  throw std::runtime_error("run key " + path + ": " + problem);
}

/// A string that is wiped on destruction.
struct Secret {
  std::string text;
  ~Secret() { OPENSSL_cleanse(text.data(), text.size()); }
};

void CheckOwnersOnly(const Descriptor& file, const std::string& path) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) Fail(path, "cannot be examined: " + SystemWords(errno));
  if (!S_ISREG(status.st_mode)) Fail(path, "expected a plain file");
  if ((status.st_mode & 077) != 0)
    Fail(path, "readable or writable by others than its owner, expected mode 0600 (chmod 600)");
  if (status.st_size > static_cast<off_t>(kLongestFile))
    Fail(path, "expected 64 hex digits, got " + std::to_string(status.st_size) + " bytes");
}

void ReadAll(const Descriptor& file, const std::string& path, std::string& text) {
  text.resize(kLongestFile + 1);
  std::size_t num_read = 0;
  while (num_read < text.size()) {
    const ssize_t n = read(file.get(), text.data() + num_read, text.size() - num_read);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail(path, "cannot be read: " + SystemWords(errno));
    if (n == 0) break;
    num_read += static_cast<std::size_t>(n);
  }
  text.resize(num_read);
}

/// Parses 64 hex digits.
std::array<std::byte, RunKey::kBytes> ParseDigits(const std::string& path, std::string_view text) {
  constexpr std::size_t kDigits = 2 * RunKey::kBytes;
  if (text.size() != kDigits)
    Fail(path, "expected 64 hex digits, got " + std::to_string(text.size()) + " characters");
  std::array<std::byte, RunKey::kBytes> bytes{};
  for (std::size_t i = 0; i < RunKey::kBytes; ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
      Fail(path, "expected 64 hex digits, got another character at or after place " +
                     std::to_string(2 * i));
    }
    bytes[i] = static_cast<std::byte>(byte);
  }
  return bytes;
}

/// Returns the text of a key file without its newline.
void ReadKeyText(const std::string& path, Secret& secret) {
  // Without O_NONBLOCK, opening a FIFO would block.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file) Fail(path, "cannot be opened: " + SystemWords(errno));
  CheckOwnersOnly(file, path);
  ReadAll(file, path, secret.text);
  if (!secret.text.empty() && secret.text.back() == '\n') secret.text.pop_back();
}

}  // namespace

void FillRandom(std::span<std::byte> bytes) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) !=
      1)
    throw std::runtime_error("the system's random source failed");
}

RunKey RunKey::Generate() {
  std::array<std::byte, kBytes> bytes{};
  FillRandom(bytes);
  return RunKey(bytes);
}

RunKey RunKey::ReadFile(const std::string& path) {
  Secret secret;
  ReadKeyText(path, secret);
  if (secret.text.starts_with(kFeedMark))
    Fail(path, "this is a feed key, with which only `troupe feed` works; expected the run key");
  return RunKey(ParseDigits(path, secret.text));
}

RunKey RunKey::ReadFeedFile(const std::string& path) {
  Secret secret;
  ReadKeyText(path, secret);
  const std::string_view text = secret.text;
  if (!text.starts_with(kFeedMark)) return RunKey(ParseDigits(path, text)).Feed();
  return RunKey(ParseDigits(path, text.substr(kFeedMark.size())));
}

void RunKey::WriteFile(const std::string& path) const { WriteWithMark(path, ""); }

void RunKey::WriteFeedFile(const std::string& path) const { Feed().WriteWithMark(path, kFeedMark); }

void RunKey::WriteWithMark(const std::string& path, std::string_view mark) const {
  static constexpr char kDigits[] = "0123456789abcdef";
  Secret secret;
  secret.text.reserve(mark.size() + 2 * kBytes + 1);
  secret.text += mark;
  for (const std::byte b : bytes_) {
    secret.text += kDigits[std::to_integer<unsigned>(b) >> 4];
    secret.text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  secret.text += '\n';
  const Descriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) Fail(path, "cannot be created: " + SystemWords(errno));
  const std::string& text = secret.text;
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(file.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail(path, "cannot be written: " + SystemWords(errno));
    done += static_cast<std::size_t>(n);
  }
  if (fsync(file.get()) != 0) Fail(path, "cannot be written: " + SystemWords(errno));
}

Descriptor RunKey::ToDescriptor() const {
  Descriptor file(memfd_create("troupe run key", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) Fail("in memory", SystemWords(errno));
  constexpr int kNoChange = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (write(file.get(), bytes_.data(), kBytes) != static_cast<ssize_t>(kBytes) ||
      fcntl(file.get(), F_ADD_SEALS, kNoChange) != 0)
    Fail("in memory", "cannot be written: " + SystemWords(errno));
  return file;
}

RunKey RunKey::FromDescriptor(int descriptor) {
  const Descriptor file(descriptor);
  const std::string name = "descriptor " + std::to_string(descriptor);
  std::array<std::byte, kBytes> bytes{};
  // pread, since other processes share the descriptor's position.
  const ssize_t count = pread(file.get(), bytes.data(), kBytes, 0);
  if (count < 0) Fail(name, "cannot be read: " + SystemWords(errno));
  if (count != static_cast<ssize_t>(kBytes))
    Fail(name, "expected 32 bytes, got " + std::to_string(count));
  return RunKey(bytes);
}

RunKey RunKey::Derive(std::string_view purpose) const {
  static constexpr std::string_view kLabel = "troupe derived key: ";
  std::string message(kLabel);
  message += purpose;
  return RunKey(Authenticate(std::as_bytes(std::span(message))));
}

RunKey::Digest RunKey::Authenticate(std::span<const std::byte> message) const {
  Digest digest{};
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), bytes_.data(), static_cast<int>(kBytes),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &size) == nullptr ||
      size != digest.size())
    throw std::runtime_error("libcrypto cannot compute HMAC-SHA256");
  return digest;
}

bool EqualDigests(const RunKey::Digest& a, const RunKey::Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace troupe
