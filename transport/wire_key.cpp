#include "transport/wire_key.hpp"

#include <algorithm>
#include <cstring>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <stdexcept>
#include <string>
#include <string_view>

namespace troupe {
namespace {

void CheckCrypto(bool good, const char* call) {
  if (good) return;
  char text[256] = "no reason given";
  if (const unsigned long code = ERR_get_error(); code != 0) ERR_error_string_n(code, text, 256);
  throw std::runtime_error(std::string("data plane keys: ") + call + ": " + text);
}

unsigned char* Bytes(std::byte* data) { return reinterpret_cast<unsigned char*>(data); }
const unsigned char* Bytes(const std::byte* data) {
  return reinterpret_cast<const unsigned char*>(data);
}

using DerivedKey = std::array<std::byte, 32>;

DerivedKey Derive(const WireSecret& secret, std::string_view purpose, const WireSalt& salt,
                  ProcessId sender) {
  std::array<std::byte, 64> input{};
  std::memcpy(input.data(), purpose.data(), std::min<std::size_t>(purpose.size(), 40));
  std::memcpy(input.data() + 40, salt.data(), salt.size());
  std::memcpy(input.data() + 56, &sender, sizeof sender);
  DerivedKey key;
  unsigned int size = 0;
  CheckCrypto(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                   Bytes(input.data()), input.size(), Bytes(key.data()), &size) != nullptr &&
                  size == key.size(),
              "HMAC");
  return key;
}

struct FreeMac {
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

}  // namespace

WireSalt DrawSalt() {
  WireSalt salt;
  CheckCrypto(RAND_bytes(Bytes(salt.data()), static_cast<int>(salt.size())) == 1, "RAND_bytes");
  return salt;
}

struct WireKey::Contexts {
  Contexts(const WireSecret& secret, const WireSalt& salt, ProcessId sender)
      : tag_key(Derive(secret, "troupe data plane tag", salt, sender)) {
    const std::unique_ptr<EVP_MAC, FreeMac> siphash(EVP_MAC_fetch(nullptr, "SIPHASH", nullptr));
    CheckCrypto(siphash != nullptr, "EVP_MAC_fetch(SIPHASH)");
    tag.reset(EVP_MAC_CTX_new(siphash.get()));
    CheckCrypto(tag != nullptr, "EVP_MAC_CTX_new");

    mac.reset(EVP_CIPHER_CTX_new());
    CheckCrypto(mac != nullptr, "EVP_CIPHER_CTX_new");
    const DerivedKey key = Derive(secret, "troupe data plane mac", salt, sender);
    CheckCrypto(
        EVP_EncryptInit_ex(mac.get(), EVP_aes_256_gcm(), nullptr, Bytes(key.data()), nullptr) == 1,
        "EVP_EncryptInit_ex(aes-256-gcm)");
  }

  void Absorb(std::span<const std::byte> bytes) {
    // OpenSSL takes int lengths. A multiple of the block size keeps its fast path.
    constexpr std::size_t kStep = std::size_t{1} << 30;
    for (std::size_t at = 0; at < bytes.size(); at += kStep) {
      int ignored = 0;
      CheckCrypto(EVP_EncryptUpdate(mac.get(), nullptr, &ignored, Bytes(bytes.data() + at),
                                    static_cast<int>(std::min(kStep, bytes.size() - at))) == 1,
                  "EVP_EncryptUpdate");
    }
  }

  DerivedKey tag_key;  // only the first half is used
  std::unique_ptr<EVP_MAC_CTX, FreeMac> tag;
  std::unique_ptr<EVP_CIPHER_CTX, FreeCipher> mac;
};

WireKey::WireKey(const WireSecret& secret, const WireSalt& salt, ProcessId sender)
    : contexts_(std::make_unique<Contexts>(secret, salt, sender)) {}
WireKey::WireKey(WireKey&&) noexcept = default;
WireKey& WireKey::operator=(WireKey&&) noexcept = default;
WireKey::~WireKey() = default;

std::uint64_t WireKey::Tag(WirePurpose purpose, ProcessId to, Label label) {
  std::array<std::byte, 24> input;
  std::memcpy(input.data(), &purpose, 4);
  std::memcpy(input.data() + 4, &to, 4);
  std::memcpy(input.data() + 8, &label.stream, 8);
  std::memcpy(input.data() + 16, &label.sequence, 8);
  std::size_t size = sizeof(std::uint64_t);
  const std::array<OSSL_PARAM, 2> parameters{
      OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size), OSSL_PARAM_construct_end()};
  EVP_MAC_CTX* const context = contexts_->tag.get();
  std::array<std::byte, 8> output;
  std::size_t written = 0;
  CheckCrypto(EVP_MAC_init(context, Bytes(contexts_->tag_key.data()), 16, parameters.data()) == 1 &&
                  EVP_MAC_update(context, Bytes(input.data()), input.size()) == 1 &&
                  EVP_MAC_final(context, Bytes(output.data()), &written, output.size()) == 1 &&
                  written == output.size(),
              "EVP_MAC(SIPHASH)");
  std::uint64_t tag = 0;
  std::memcpy(&tag, output.data(), sizeof tag);
  return tag;
}

WireMac WireKey::Sign(WirePurpose purpose, std::uint64_t counter, std::span<const std::byte> head,
                      std::span<const std::byte> body) {
  std::array<std::byte, 12> nonce;
  std::memcpy(nonce.data(), &purpose, 4);
  std::memcpy(nonce.data() + 4, &counter, 8);
  EVP_CIPHER_CTX* const context = contexts_->mac.get();
  CheckCrypto(EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, Bytes(nonce.data())) == 1,
              "EVP_EncryptInit_ex");
  contexts_->Absorb(head);
  contexts_->Absorb(body);
  WireMac mac;
  std::array<unsigned char, 16> nothing;
  int size = 0;
  CheckCrypto(EVP_EncryptFinal_ex(context, nothing.data(), &size) == 1, "EVP_EncryptFinal_ex");
  CheckCrypto(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(mac.size()),
                                  mac.data()) == 1,
              "EVP_CIPHER_CTX_ctrl(GET_TAG)");
  return mac;
}

bool WireKey::Verify(const WireMac& mac, WirePurpose purpose, std::uint64_t counter,
                     std::span<const std::byte> head, std::span<const std::byte> body) {
  const WireMac expected = Sign(purpose, counter, head, body);
  return CRYPTO_memcmp(mac.data(), expected.data(), mac.size()) == 0;
}

}  // namespace troupe
