#include "files/sha256.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <openssl/evp.h>
#include <stdexcept>
#include <vector>

namespace troupe {

namespace {

constexpr std::size_t kBytes = 32;

void Check(int result, const char* call) {
  if (result != 1) throw std::runtime_error(std::string("SHA-256: ") + call + " failed");
}

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, FreeContext> state{EVP_MD_CTX_new()};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  Check(context_->state ? 1 : 0, "EVP_MD_CTX_new");
  Check(EVP_DigestInit_ex(context_->state.get(), EVP_sha256(), nullptr), "EVP_DigestInit_ex");
}

Sha256::~Sha256() = default;

void Sha256::Update(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  Check(EVP_DigestUpdate(context_->state.get(), bytes.data(), bytes.size()), "EVP_DigestUpdate");
}

std::string Sha256::Hex() {
  std::array<unsigned char, kBytes> digest{};
  Check(EVP_DigestFinal_ex(context_->state.get(), digest.data(), nullptr), "EVP_DigestFinal_ex");
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 0xF];
  }
  return hex;
}

std::string Sha256Of(const std::string& text) {
  Sha256 sum;
  sum.Update(std::as_bytes(std::span(text)));
  return sum.Hex();
}

std::optional<std::string> Sha256OfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  Sha256 sum;
  std::vector<char> bytes(std::size_t{1} << 20);
  while (file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())), file.gcount() > 0) {
    sum.Update(std::as_bytes(std::span(bytes)).first(static_cast<std::size_t>(file.gcount())));
  }
  return sum.Hex();
}

bool IsSha256(const std::string& text) {
  return text.size() == 2 * kBytes && std::ranges::all_of(text, [](char digit) {
           return (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f');
         });
}

}  // namespace troupe
