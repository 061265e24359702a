#include "cluster/tls.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <future>
#include <openssl/ssl.h>
#include <optional>
#include <poll.h>
#include <random>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "cluster/poll_set.hpp"
#include "tests/cluster/certificates.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using std::chrono::steady_clock;
using testing::Authority;

namespace {

Deadline Soon() { return steady_clock::now() + 60s; }

struct Wire {
  Socket listener = Socket::Listen({"127.0.0.1", 0});
  Socket near = Socket::Connect(listener.local_address(), Soon());
  Socket far = listener.Accept(Soon());
};

/// How one side's handshake ended.
struct Outcome {
  Socket socket;
  std::string error;
};

Outcome Secure(const TlsContext& context, Socket plain, bool initiator,
               std::chrono::milliseconds time = 2s) {
  Outcome outcome;
  try {
    outcome.socket = SecureSocket(context, std::move(plain), initiator, initiator ? "n0" : "n2",
                                  steady_clock::now() + time);
  } catch (const std::runtime_error& error) {
    outcome.error = error.what();
  }
  return outcome;
}

/// Both sides at once: [0] connected, [1] accepted.
std::array<Outcome, 2> SecureBoth(const TlsContext& near, const TlsContext& far) {
  Wire wire;
  auto accepted =
      std::async(std::launch::async, [&] { return Secure(far, std::move(wire.far), false); });
  Outcome connected = Secure(near, std::move(wire.near), true);
  return {std::move(connected), accepted.get()};
}

/// Two processes of one authority, and one connection between them.
struct Secured {
  explicit Secured(const Authority& authority)
      : near_context(authority.Issue("n2")), far_context(authority.Issue("n0")) {
    auto both = SecureBoth(near_context, far_context);
    REQUIRE(both[0].error == "");
    REQUIRE(both[1].error == "");
    near = std::move(both[0].socket);
    far = std::move(both[1].socket);
  }
  TlsContext near_context;
  TlsContext far_context;
  Socket near;
  Socket far;
};

std::vector<std::byte> RandomBytes(std::size_t size, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, 8);
  }
  return bytes;
}

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

/// Until `socket` ends: all that came.
std::vector<std::byte> ReadToEnd(Socket& socket) {
  std::vector<std::byte> all;
  std::array<std::byte, 65536> bytes;
  const Deadline deadline = Soon();
  while (steady_clock::now() < deadline) {
    const auto n = socket.TryRead(bytes);
    if (n == 0) return all;
    if (n) all.insert(all.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(*n));
    pollfd entry{socket.fd(), POLLIN, 0};
    if (!n) poll(&entry, 1, 1000);
  }
  throw std::runtime_error("it did not end");
}

/// Until writing fails, as it does once nobody is there.
bool WritingFails(Socket& socket) {
  const std::array<std::byte, 1> byte{};
  const Deadline deadline = Soon();
  try {
    while (steady_clock::now() < deadline) {
      socket.Write(byte, deadline);
      std::this_thread::sleep_for(1ms);
    }
  } catch (const SocketError&) {
    return true;
  }
  return false;
}

/// Writes and reads at once, as much as `sent` each way: what came.
std::vector<std::byte> Exchange(Socket& socket, std::span<const std::byte> sent,
                                std::size_t expected) {
  std::vector<std::byte> got(expected);
  std::size_t num_got = 0;
  const Deadline deadline = Soon();
  PollSet polls;
  while (!sent.empty() || num_got < expected) {
    polls.Clear();
    polls.Add(socket.fd(), static_cast<short>(sent.empty() ? POLLIN : POLLIN | POLLOUT));
    polls.Wait(deadline);
    if (steady_clock::now() > deadline) throw std::runtime_error("not all came");
    sent = sent.subspan(sent.empty() ? 0 : socket.TryWrite(sent.first(std::min<std::size_t>(
                                               sent.size(), 100'000))));
    if (num_got == expected) continue;
    const auto n = socket.TryRead(std::span(got).subspan(num_got));
    if (n == 0) throw std::runtime_error("it closed the connection");
    num_got += n.value_or(0);
  }
  return got;
}

}  // namespace

TEST_CASE("two of one authority speak, encrypted") {
  const Authority authority("ca");
  Wire wire;
  const TlsContext near(authority.Issue("n2"));
  const TlsContext far(authority.Issue("n0"));
  // In between, somebody who passes everything on, and looks.
  Wire second;
  std::vector<std::byte> seen;
  auto accepted = std::async(std::launch::async,
                             [&] { return Secure(far, std::move(second.far), false); });
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
        seen.insert(seen.end(), bytes.begin(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(*forth));
        second.near.Write(std::span(bytes).first(*forth), deadline);
      }
      if (const auto back = second.near.TryRead(bytes); back && *back > 0)
        wire.far.Write(std::span(bytes).first(*back), deadline);
    }
  });
  Outcome connected = Secure(near, std::move(wire.near), true);
  Outcome other = accepted.get();
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

TEST_CASE("who connects without an accepted certificate is told, though it accepts the other's") {
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
        "n2 (127.0.0.1): TLS handshake failed: its certificate is not signed by CA " +
            ours.file());
}

TEST_CASE("who shows no certificate, or one that has expired, is refused") {
  const Authority authority("ca");
  const TlsContext far(authority.Issue("n0"));
  // A TlsContext would not even begin with these.
  for (const bool expired : {false, true}) {
    Wire wire;
    auto accepted = std::async(std::launch::async,
                               [&] { return Secure(far, std::move(wire.far), false); });
    const auto began = steady_clock::now();
    CHECK(ConnectBare(wire.near, expired ? std::optional(authority.Issue("n2", -60s))
                                         : std::nullopt));
    CHECK_THAT(accepted.get().error,
               Contains("n2 (127.0.0.1): TLS handshake failed: ") &&
                   Contains(expired ? "its certificate expired" : "it shows no certificate"));
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
    CHECK_THAT(Secure(context, std::move(closed.far), initiator).error,
               Contains("TLS handshake failed: it closed the connection") ||
                   Contains("connection reset"));
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
    TlsHandshake first(near, std::move(wire.near), Side::kInitiator, "n0", &session);
    TlsHandshake second(far, std::move(wire.far), Side::kAcceptor, "n2", &other);
    const Deadline deadline = Soon();
    const auto running = [](TlsHandshake& handshake) {
      return handshake.Advance() == TlsHandshake::Status::kRunning;
    };
    while ((running(first) | running(second)) && steady_clock::now() < deadline)
      std::this_thread::yield();
    if (same) {
      CHECK(first.problem() == "");
      CHECK(second.problem() == "");
    } else {
      CHECK_THAT(first.problem(), Contains("n0") && Contains("somebody in between?"));
      CHECK_THAT(second.problem(), Contains("n2") && Contains("somebody in between?"));
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
  CHECK_THAT(refusal({other.file(), good.certificate, good.key}),
             Contains("TLS certificate " + good.certificate + ": it is not signed by CA " +
                      other.file()));
  const TlsFiles expired = authority.Issue("old", -3600s);
  CHECK_THAT(refusal(expired), Contains("TLS certificate " + expired.certificate +
                                        ": it has expired: it was valid until 20") &&
                                   Contains(" UTC"));
}

TEST_CASE("64 MiB both ways at once come through whole, in a bounded memory") {
  const Authority authority("ca");
  Secured secured(authority);
  const std::size_t size = std::size_t{64} << 20;
  const auto forth = RandomBytes(size, 1);
  const auto back = RandomBytes(size, 2);
  auto far = std::async(std::launch::async, [&] { return Exchange(secured.far, back, size); });
  const auto got = Exchange(secured.near, forth, size);
  CHECK(got == back);
  CHECK(far.get() == forth);
}

TEST_CASE("who does not read holds the writer up") {
  const Authority authority("ca");
  Secured secured(authority);
  const auto bytes = RandomBytes(std::size_t{1} << 20, 1);
  std::size_t written = 0;
  Deadline stuck_since = steady_clock::now();
  // What the kernel and the relays hold on the way is less than this.
  const std::size_t limit = std::size_t{64} << 20;
  while (written < limit && steady_clock::now() < stuck_since + 300ms) {
    const std::size_t n = secured.near.TryWrite(bytes);
    written += n;
    if (n > 0) stuck_since = steady_clock::now();
  }
  CHECK(written < limit);
  secured.near = Socket();
  CHECK(ReadToEnd(secured.far).size() == written);
}

TEST_CASE("closing passes through in both directions, after everything that was written") {
  const Authority authority("ca");
  for (const bool near_closes : {true, false}) {
    Secured secured(authority);
    Socket& closes = near_closes ? secured.near : secured.far;
    Socket& stays = near_closes ? secured.far : secured.near;
    const auto bytes = RandomBytes(100'000, 3);
    closes.Write(bytes, Soon());
    closes = Socket();
    CHECK(ReadToEnd(stays) == bytes);
    CHECK(WritingFails(stays));
  }
}

TEST_CASE("a half-closed connection still carries the other direction") {
  const Authority authority("ca");
  Secured secured(authority);
  const auto bytes = RandomBytes(100'000, 3);
  secured.near.Write(bytes, Soon());
  secured.near.FinishWriting();
  CHECK(ReadToEnd(secured.far) == bytes);
  secured.far.Write(bytes, Soon());
  secured.far.FinishWriting();
  CHECK(ReadToEnd(secured.near) == bytes);
}

TEST_CASE("a TCP connection that ends without a goodbye ends the secured one") {
  const Authority authority("ca");
  for (const bool reset : {false, true}) {
    const TlsContext near(authority.Issue("n2"));
    const TlsContext far(authority.Issue("n0"));
    Wire wire;
    const Socket below = wire.near.Duplicate();
    auto accepted =
        std::async(std::launch::async, [&] { return Secure(far, std::move(wire.far), false); });
    Outcome connected = Secure(near, std::move(wire.near), true);
    Outcome other = accepted.get();
    REQUIRE(other.error == "");
    const auto bytes = RandomBytes(100, 3);
    connected.socket.Write(bytes, Soon());
    std::array<std::byte, 100> got{};
    other.socket.Read(got, Soon());
    if (reset) {
      // Nonsense behind OpenSSL's back, as somebody on the network might send it.
      REQUIRE(send(below.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == 100);
    } else {
      shutdown(below.fd(), SHUT_RDWR);
    }
    CHECK(ReadToEnd(other.socket).empty());
    CHECK(WritingFails(other.socket));
    CHECK(ReadToEnd(connected.socket).empty());
  }
}

TEST_CASE("a hundred thousand small messages each way come through, each at once") {
  const Authority authority("ca");
  Secured secured(authority);
  constexpr std::size_t kMessages = 100'000;
  constexpr std::size_t kBytes = 40;
  const auto send_all = [](Socket& socket, unsigned seed) {
    const auto bytes = RandomBytes(kMessages * kBytes, seed);
    for (std::size_t i = 0; i < kMessages; ++i)
      socket.Write(std::span(bytes).subspan(i * kBytes, kBytes), Soon());
  };
  const auto read_all = [](Socket& socket, unsigned seed) {
    std::vector<std::byte> bytes(kMessages * kBytes);
    for (std::size_t i = 0; i < kMessages; ++i)
      socket.Read(std::span(bytes).subspan(i * kBytes, kBytes), Soon());
    return bytes == RandomBytes(kMessages * kBytes, seed);
  };
  std::thread forth([&] { send_all(secured.near, 1); });
  std::thread back([&] { send_all(secured.far, 2); });
  auto far = std::async(std::launch::async, [&] { return read_all(secured.far, 1); });
  CHECK(read_all(secured.near, 2));
  CHECK(far.get());
  forth.join();
  back.join();
}

TEST_CASE("a message is not held back for others to come") {
  const Authority authority("ca");
  Secured secured(authority);
  std::array<std::byte, 8> message{};
  // A delayed acknowledgement, a timer or Nagle's algorithm would cost 40 ms each time.
  const auto began = steady_clock::now();
  for (int i = 0; i < 200; ++i) {
    secured.near.Write(message, Soon());
    secured.far.Read(message, Soon());
    secured.far.Write(message, Soon());
    secured.near.Read(message, Soon());
  }
  const auto per_round = (steady_clock::now() - began) / 200;
  INFO(std::chrono::duration_cast<std::chrono::microseconds>(per_round).count() << " us a round");
  CHECK(per_round < 20ms);
}

TEST_CASE("thirty-two connections share one relay, and one that is stuck holds up no other") {
  const Authority authority("ca");
  const TlsContext near(authority.Issue("n2"));
  const TlsContext far(authority.Issue("n0"));
  std::vector<std::array<Outcome, 2>> connections;
  for (int i = 0; i < 32; ++i) {
    connections.push_back(SecureBoth(near, far));
    REQUIRE(connections.back()[0].error == "");
    REQUIRE(connections.back()[1].error == "");
  }
  // Nobody reads the first one.
  const auto flood = RandomBytes(std::size_t{1} << 20, 9);
  while (connections[0][0].socket.TryWrite(flood) > 0) continue;
  std::vector<std::future<bool>> done;
  for (std::size_t i = 1; i < connections.size(); ++i)
    for (const std::size_t side : {0U, 1U})
      done.push_back(std::async(std::launch::async, [&, i, side] {
        const auto seed = static_cast<unsigned>(2 * i + side);
        const auto other = static_cast<unsigned>(2 * i + (1 - side));
        const std::size_t size = 300'000 + i;
        return Exchange(connections[i][side].socket, RandomBytes(size, seed), size) ==
               RandomBytes(size, other);
      }));
  for (auto& result : done) CHECK(result.get());
}

TEST_CASE("what was written is with the kernel after Flush, and when the context goes") {
  const Authority authority("ca");
  const TlsContext far(authority.Issue("n0"));
  const auto bytes = RandomBytes(60'000, 4);
  for (const bool flush : {true, false}) {
    auto near = std::make_unique<TlsContext>(authority.Issue("n2"));
    Wire wire;
    Socket below = wire.far.Duplicate();
    auto both = std::async(std::launch::async,
                           [&] { return Secure(far, std::move(wire.far), false); });
    Outcome connected = Secure(*near, std::move(wire.near), true);
    Outcome other = both.get();
    REQUIRE(connected.error == "");
    connected.socket.Write(bytes, Soon());
    if (flush) {
      near->Flush(Soon());
      std::vector<std::byte> got(bytes.size());
      other.socket.Read(got, Soon());
      CHECK(got == bytes);
    } else {
      near.reset();
      CHECK(ReadToEnd(other.socket) == bytes);
      CHECK(ReadToEnd(connected.socket).empty());
    }
  }
}
