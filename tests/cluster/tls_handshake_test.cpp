// Which processes a TLS connection accepts, and what the others report.
#include <algorithm>
#include <array>
#include <fstream>
#include <future>
#include <memory>
#include <openssl/ssl.h>
#include <optional>
#include <poll.h>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "cluster/poll_set.hpp"
#include "cluster/tls.hpp"
#include "tests/cluster/secured.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using std::chrono::steady_clock;

namespace {

/// A client of nothing but OpenSSL, with a certificate or none. True when, to it, all went well: it
/// does not wait for what the other side says of its certificate.
bool ConnectBare(const Socket& socket, const std::optional<TlsFiles>& files) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_method()),
                                                                  &SSL_CTX_free);
  if (files) {
    SSL_CTX_use_certificate_file(context.get(), files->certificate.c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context.get(), files->key.c_str(), SSL_FILETYPE_PEM);
  }
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
  SSL_set_fd(ssl.get(), socket.fd());
  const Deadline deadline = Soon();
  int result = -1;
  while ((result = SSL_connect(ssl.get())) != 1 && steady_clock::now() < deadline) {
    pollfd entry{socket.fd(), POLLIN, 0};
    poll(&entry, 1, 1000);
  }
  return result == 1;
}

}  // namespace

TEST_CASE("two of one authority speak, encrypted") {
  const Authority authority("ca");
  Wire wire;
  const TlsContext near(authority.Issue("n2"));
  const TlsContext far(authority.Issue("n0"));
  // In between, a proxy that forwards everything, and reads it.
  Wire second;
  std::vector<std::byte> seen;
  auto accepted =
      std::async(std::launch::async, [&] { return Secure(far, std::move(second.far), false); });
  std::thread between([&] {
    std::array<std::byte, 4096> bytes;
    PollSet polls;
    const Deadline deadline = Soon();
    while (steady_clock::now() < deadline) {
      polls.Clear();
      polls.Add(wire.far.fd(), POLLIN);
      polls.Add(second.near.fd(), POLLIN);
      polls.Wait(deadline);
      const auto forth = wire.far.TryRead(bytes);
      if (forth == 0) return;
      if (forth) {
        seen.insert(seen.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(*forth));
        second.near.Write(std::span(bytes).first(*forth), deadline);
      }
      if (const auto back = second.near.TryRead(bytes); back && *back > 0)
        wire.far.Write(std::span(bytes).first(*back), deadline);
    }
  });
  SecuredEnd connected = Secure(near, std::move(wire.near), true);
  SecuredEnd other = accepted.get();
  CHECK(connected.error == "");
  CHECK(other.error == "");
  const std::string text = "a text that nobody else is to read";
  const auto words = std::as_bytes(std::span(text));
  connected.socket.Write(words, Soon());
  connected.socket = Socket();
  const auto got = ReadToEnd(other.socket);
  CHECK(std::equal(got.begin(), got.end(), words.begin(), words.end()));
  between.join();
  CHECK(seen.size() > words.size());
  CHECK(std::search(seen.begin(), seen.end(), words.begin(), words.end()) == seen.end());
}

TEST_CASE("a certificate of another authority is refused, in words on both sides") {
  const Authority ours("ca");
  const Authority theirs("other_ca");
  const TlsContext near(theirs.Issue("n2"));
  const TlsContext far(ours.Issue("n0"));
  const auto began = steady_clock::now();
  const auto both = SecureBoth(near, far);
  CHECK(steady_clock::now() - began < 2s);
  CHECK(both[0].error ==
        "n0 (127.0.0.1): TLS handshake failed: its certificate is not signed by CA " +
            theirs.file());
  CHECK(both[1].error ==
        "n2 (127.0.0.1): TLS handshake failed: it does not accept this process's certificate: not "
        "signed by its CA");
}

TEST_CASE("a process without an accepted certificate learns it, though it accepts the other's") {
  const Authority ours("ca");
  const Authority theirs("other_ca");
  // It trusts both, so that only the accepting side has something to refuse.
  TlsFiles files = theirs.Issue("n2");
  std::ifstream other(ours.file());
  std::ofstream(files.ca, std::ios::app) << other.rdbuf();
  const TlsContext near(files);
  const TlsContext far(ours.Issue("n0"));
  const auto both = SecureBoth(near, far);
  CHECK(both[0].error ==
        "n0 (127.0.0.1): TLS handshake failed: it does not accept this process's certificate: not "
        "signed by its CA");
  CHECK(both[1].error ==
        "n2 (127.0.0.1): TLS handshake failed: its certificate is not signed by CA " + ours.file());
}

TEST_CASE("who shows no certificate, or one that has expired, is refused") {
  const Authority authority("ca");
  const TlsContext far(authority.Issue("n0"));
  // A TlsContext would not even begin with these.
  for (const bool expired : {false, true}) {
    Wire wire;
    auto accepted =
        std::async(std::launch::async, [&] { return Secure(far, std::move(wire.far), false); });
    const auto began = steady_clock::now();
    CHECK(ConnectBare(wire.near,
                      expired ? std::optional(authority.Issue("n2", -60s)) : std::nullopt));
    CHECK_THAT(accepted.get().error,
               Contains("n2 (127.0.0.1): TLS handshake failed: ") &&
                   Contains(expired ? "its certificate expired" : "it presented no certificate"));
    CHECK(steady_clock::now() - began < 2s);
  }
}

TEST_CASE("who does not speak TLS is refused within the time, whatever it says") {
  const Authority authority("ca");
  const TlsContext context(authority.Issue("n0"));
  const std::string not_tls = "n2 (127.0.0.1): TLS handshake failed: it does not speak TLS";
  for (const bool initiator : {false, true}) {
    const std::string expected = initiator ? "n0" + not_tls.substr(2) : not_tls;
    for (const unsigned seed : {0U, 1U, 2U}) {
      Wire wire;
      auto bytes = RandomBytes(5000, seed);
      bytes[0] = std::byte{0};
      if (seed == 0) std::fill(bytes.begin(), bytes.end(), std::byte{0});
      wire.near.Write(bytes, Soon());
      const auto began = steady_clock::now();
      CHECK(Secure(context, std::move(wire.far), initiator).error == expected);
      CHECK(steady_clock::now() - began < 1s);
    }
    Wire silent;
    CHECK(Secure(context, std::move(silent.far), initiator, 300ms).error ==
          expected + " (nothing came within 0.3 s)");
    Wire closed;
    closed.near = Socket();
    CHECK_THAT(
        Secure(context, std::move(closed.far), initiator).error,
        Contains("TLS handshake failed: it closed the connection") || Contains("connection reset"));
  }
}

TEST_CASE("who proved another run key on the connection is not the one at its other end") {
  const Authority authority("ca");
  const TlsContext near(authority.Issue("n2"));
  const TlsContext far(authority.Issue("n0"));
  const RunKey session = RunKey::Generate();
  for (const bool same : {true, false}) {
    Wire wire;
    const RunKey other = same ? session : RunKey::Generate();
    TlsHandshake first(near, {std::move(wire.near), session}, Side::kInitiator, "n0");
    TlsHandshake second(far, {std::move(wire.far), other}, Side::kAcceptor, "n2");
    const Deadline deadline = Soon();
    const auto running = [](TlsHandshake& handshake) {
      return handshake.Advance(steady_clock::now()) == TlsHandshake::Status::kRunning;
    };
    while ((running(first) | running(second)) && steady_clock::now() < deadline)
      std::this_thread::yield();
    if (same) {
      CHECK(first.problem() == "");
      CHECK(second.problem() == "");
    } else {
      CHECK_THAT(first.problem(), Contains("n0") && Contains("man in the middle?"));
      CHECK_THAT(second.problem(), Contains("n2") && Contains("man in the middle?"));
      CHECK_FALSE(first.lost());
    }
  }
}

TEST_CASE("files that cannot be used are refused by name") {
  const Authority authority("ca");
  const Authority other("other_ca");
  const TlsFiles good = authority.Issue("n0");
  const TlsFiles second = authority.Issue("n1");
  const auto refusal = [](TlsFiles files) -> std::string {
    try {
      TlsContext context(std::move(files));
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal(good) == "");
  const std::string missing = good.ca + ".missing";
  CHECK(refusal({missing, good.certificate, good.key}) ==
        "TLS CA " + missing + ": no such file or directory");
  CHECK(refusal({good.ca, missing, good.key}) ==
        "TLS certificate " + missing + ": no such file or directory");
  CHECK(refusal({good.ca, good.certificate, missing}) ==
        "TLS key " + missing + ": no such file or directory (certificate " + good.certificate +
            ")");
  CHECK(refusal({good.ca, good.certificate, second.key}) ==
        "TLS key " + second.key + ": key values mismatch (certificate " + good.certificate + ")");
  CHECK_THAT(refusal({good.ca, good.key, good.key}),
             Contains("TLS certificate " + good.key + ": "));
  CHECK_THAT(
      refusal({other.file(), good.certificate, good.key}),
      Contains("TLS certificate " + good.certificate + ": it is not signed by CA " + other.file()));
  const TlsFiles expired = authority.Issue("old", -3600s);
  CHECK_THAT(refusal(expired), Contains("TLS certificate " + expired.certificate +
                                        ": it has expired: it was valid until 20") &&
                                   Contains(" UTC"));
}
