// What a plane notices of a process that is killed. The other process is this program once more,
// with the test "[.peer]", since UCX must not be used on both sides of a fork.
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/transport/plane_job.hpp"

using namespace troupe;
using troupe::testing::Blank;
using troupe::testing::MakePlane;
using troupe::testing::Outcomes;
using troupe::testing::Pattern;
using troupe::testing::SecretOf;
using troupe::testing::TcpPair;
using troupe::testing::UcxOptionsOf;

namespace {

constexpr int kControl = 3;  // the descriptor over which the other process talks
constexpr int kTensors = 4;  // the connection of its tensors, with kProven
constexpr std::int64_t kLarge = std::int64_t{256} << 20;

void WriteAll(int descriptor, const void* data, std::size_t size) {
  if (::write(descriptor, data, size) != static_cast<ssize_t>(size))
    throw std::runtime_error("the other process is gone");
}

std::vector<std::byte> ReadSome(int descriptor) {
  std::vector<std::byte> bytes(4096);
  const ssize_t size = ::read(descriptor, bytes.data(), bytes.size());
  if (size <= 0) throw std::runtime_error("the other process is gone");
  bytes.resize(static_cast<std::size_t>(size));
  return bytes;
}

std::vector<TcpConnection> ConnectionTo(ProcessId peer, Descriptor socket) {
  std::vector<TcpConnection> connections;
  connections.push_back({peer, std::move(socket), SecretOf(1)});
  return connections;
}

/// The other process, process 1 of 2.
class PeerProcess {
 public:
  explicit PeerProcess(const std::string& tls) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::runtime_error("socketpair");
    control_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    auto [mine, theirs] = TcpPair();
    tensors_ = std::move(mine);
    // Both above the numbers that the other process knows them by.
    const Descriptor control(::fcntl(ends[1], F_DUPFD_CLOEXEC, 10));
    const Descriptor tensors(::fcntl(theirs.get(), F_DUPFD_CLOEXEC, 10));
    posix_spawn_file_actions_adddup2(&actions, control.get(), kControl);
    posix_spawn_file_actions_adddup2(&actions, tensors.get(), kTensors);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    std::string program = "test_transport";
    std::string tag = "[.peer]";
    char* arguments[] = {program.data(), tag.data(), nullptr};
    const int failed =
        ::posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (failed != 0) throw std::runtime_error("posix_spawn");
    WriteAll(control_, tls.data(), tls.size());
  }
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;
  ~PeerProcess() {
    Kill();
    ::close(control_);
  }
  int control() const { return control_; }
  std::vector<TcpConnection> TakeTensors() { return ConnectionTo(1, std::move(tensors_)); }
  void Stop() { ::kill(process_, SIGSTOP); }
  /// And reaps it: to UCX's keepalive a process that is not reaped still lives.
  void Kill() {
    if (process_ < 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  int control_ = -1;
  Descriptor tensors_;
  pid_t process_ = -1;
};

/// Process 0, and the other one, connected.
struct Pair {
  explicit Pair(const std::string& tls) : peer(tls) {
    UcxOptions options = UcxOptionsOf(0, 2, tls);
    options.abort = abort;
    options.store = &store;
    options.peer_failed = [this](ProcessId process, const std::string& reason) {
      failures.End("n" + std::to_string(process) + ": " + reason);
    };
    plane = MakePlane(options, peer.TakeTensors());
    store.Attach(plane.get());
    const auto address = plane->address();
    WriteAll(peer.control(), address.data(), address.size());
    plane->Connect({address, ReadSome(peer.control())});
    TensorReference reference;
    reference.home = 1;
    reference.shape = {kLarge};
    reference.dtype = DType::kUInt8;
    const auto bytes = ReadSome(peer.control());
    std::memcpy(&reference.key, bytes.data(), 8);
    std::memcpy(&reference.weight, bytes.data() + 8, 8);
    handle = store.Resolve(reference);
  }
  ~Pair() {
    handle = Buffer();
    store.Detach();
  }

  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
  Outcomes failures{abort};
  Outcomes receives{abort};
  TensorStore store{abort};
  PeerProcess peer;
  std::unique_ptr<Plane> plane;
  Buffer handle;  // kLarge bytes of the other process
};

std::chrono::milliseconds Since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               begin);
}

}  // namespace

TEST_CASE("the other process of these tests", "[.peer]") {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  RestoreSignalHandlers();
  const auto tls = ReadSome(kControl);
  const auto abort = std::make_shared<AbortSignal>();
  TensorStore store(abort);
  UcxOptions options =
      UcxOptionsOf(1, 2, std::string(reinterpret_cast<const char*>(tls.data()), tls.size()));
  options.abort = abort;
  options.store = &store;
  const auto plane = MakePlane(options, ConnectionTo(0, Descriptor(kTensors)));
  store.Attach(plane.get());
  const auto address = plane->address();
  const auto other = ReadSome(kControl);
  WriteAll(kControl, address.data(), address.size());
  plane->Connect({other, address});
  const TensorReference reference = store.Refer(Buffer::Zeros({kLarge}, DType::kUInt8));
  const std::uint64_t words[] = {reference.key, reference.weight};
  WriteAll(kControl, words, sizeof words);
  char end = 0;
  while (::read(kControl, &end, 1) > 0) continue;
  store.Detach();
}

TEST_CASE("a killed process is reported by name within a second, and its receives fail") {
  for (const char* tls : {"posix,sysv,cma", "tcp", "proven"}) {
    INFO(tls);
    Pair pair(tls);
    // Once around, so that everything is connected.
    CHECK(pair.store.FetchNow(pair.handle.Rows(0, 8), "test").num_bytes() == 8);
    pair.plane->Receive(
        {1, {1, 1}, Blank(8), "edge a>b", pair.receives.Good(), pair.receives.Bad()});
    const auto begin = std::chrono::steady_clock::now();
    pair.peer.Kill();
    REQUIRE(pair.failures.Await(1));
    CHECK(Since(begin) < std::chrono::seconds(1));
    CHECK_THAT(pair.failures.TakeErrors().at(0), Catch::Contains("n1: its data connection failed"));
    REQUIRE(pair.receives.Await(1));
    CHECK_THAT(pair.receives.TakeErrors().at(0), Catch::Contains("edge a>b: n1 is gone"));
    CHECK_THROWS_WITH(pair.store.FetchNow(pair.handle, "fetch"), Catch::Contains("n1 is gone"));
    CHECK(pair.failures.count() == 1);
  }
}

TEST_CASE("a process killed while its bytes are on the way fails the fetch") {
  for (const char* tls : {"posix,sysv,cma", "tcp", "proven"}) {
    INFO(tls);
    Pair pair(tls);
    pair.store.Fetch(
        pair.handle, "fetch", [&](const Buffer&) { pair.receives.End(""); }, pair.receives.Bad());
    pair.peer.Kill();
    REQUIRE(pair.receives.Await(1));
    // Unless the bytes were faster.
    for (const std::string& error : pair.receives.TakeErrors())
      CHECK_THAT(error, Catch::Contains("fetch: ") && Catch::Contains("n1"));
    REQUIRE(pair.failures.Await(1));
  }
}

TEST_CASE("after an abort a stopped process does not keep us from closing") {
  for (const char* tls : {"posix,sysv,cma", "tcp", "proven"}) {
    INFO(tls);
    Pair pair(tls);
    CHECK(pair.store.FetchNow(pair.handle.Rows(0, 8), "test").num_bytes() == 8);
    pair.peer.Stop();
    pair.store.Fetch(
        pair.handle, "fetch", [&](const Buffer&) { pair.receives.End(""); }, pair.receives.Bad());
    pair.plane->Send(1, {1, 1}, Pattern(1 << 20, 1), nullptr);
    for (std::uint64_t i = 0; i < 100; ++i) pair.plane->Send(1, {2, i}, Pattern(64, i), nullptr);
    const auto begin = std::chrono::steady_clock::now();
    pair.abort->Raise("n1 is stopped");
    REQUIRE(pair.receives.Await(1));
    CHECK(pair.receives.TakeErrors().at(0) == "n1 is stopped");
    pair.plane->Close();
    CHECK(Since(begin) < std::chrono::milliseconds(1500));
  }
}
