// Certificates of a test's own, made on the fly.
#pragma once

#include <chrono>
#include <cstdio>
#include <memory>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdexcept>
#include <string>

#include "cluster/tls.hpp"
#include "tests/cluster/scratch_folder.hpp"

namespace troupe::testing {

using X509Handle = std::unique_ptr<X509, decltype(&X509_free)>;
using KeyHandle = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

/// An authority in a folder, and what it signs.
class Authority {
 public:
  explicit Authority(std::string name) : name_(std::move(name)) {
    certificate_ = Make(name_, *key_, nullptr, nullptr, std::chrono::hours(1));
    WriteCertificate(file(), *certificate_);
  }

  std::string file() const { return folder_.File(name_ + ".pem"); }

  /// Of a process, valid until `valid` from now.
  TlsFiles Issue(const std::string& name,
                 std::chrono::seconds valid = std::chrono::hours(1)) const {
    const KeyHandle key = NewKey();
    const TlsFiles files{file(), folder_.File(name + ".pem"), folder_.File(name + ".key")};
    const X509Handle made = Make(name, *key, certificate_.get(), key_.get(), valid);
    WriteCertificate(files.certificate, *made);
    std::unique_ptr<FILE, int (*)(FILE*)> out(std::fopen(files.key.c_str(), "w"), &std::fclose);
    if (!out ||
        PEM_write_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
      throw std::runtime_error("cannot write " + files.key);
    return files;
  }

 private:
  static KeyHandle NewKey() { return KeyHandle(EVP_EC_gen("P-256"), &EVP_PKEY_free); }

  static X509Handle Make(const std::string& name, EVP_PKEY& key, const X509* issuer,
                         EVP_PKEY* issuer_key, std::chrono::seconds valid) {
    static long serial = 1;
    X509Handle made(X509_new(), &X509_free);
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600 * 48);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), valid.count());
    X509_set_pubkey(made.get(), &key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(made.get(), X509_get_subject_name(issuer ? issuer : made.get()));
    if (issuer == nullptr) {
      const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> may_sign(
          X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE"),
          &X509_EXTENSION_free);
      X509_add_ext(made.get(), may_sign.get(), -1);
    }
    if (X509_sign(made.get(), issuer_key ? issuer_key : &key, EVP_sha256()) == 0)
      throw std::runtime_error("cannot sign a certificate");
    return made;
  }

  static void WriteCertificate(const std::string& path, X509& certificate) {
    std::unique_ptr<FILE, int (*)(FILE*)> out(std::fopen(path.c_str(), "w"), &std::fclose);
    if (!out || PEM_write_X509(out.get(), &certificate) != 1)
      throw std::runtime_error("cannot write " + path);
  }

  std::string name_;
  ScratchFolder folder_;
  KeyHandle key_ = NewKey();
  X509Handle certificate_{nullptr, &X509_free};
};

}  // namespace troupe::testing
