// Compares the data planes between two processes with each other and with UCX itself. One
// process pulls tensors of the other, four at a time, into few buffers; ucx_perftest sends messages
// of the same size, four at a time. All run on this machine, in turn, in each of several rounds.
//
//   bench_data_plane [--tls posix,cma]... [--net lo] [--verify off|header|payload]
//                    [--spin MICROSECONDS] [--buffers 1..4] [--perftest tcp]
// --tls may be given several times; "proven" is the plane over proven TCP. --perftest names
// the transport of ucx_perftest; the default is the last --tls.
//
// ucx_perftest has one buffer on each side, which stays in the caches if it fits; real tensors
// do not. --buffers 1 gives the same conditions.
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "bench/program.hpp"
#include "tests/transport/socket_pairs.hpp"
#include "trace/analyze/median.hpp"
#include "transport/tcp/plane.hpp"
#include "transport/ucx/plane.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWindow = 4;
constexpr int kRounds = 3;
constexpr int kRepeats = 5;  // in a round
constexpr std::array<std::int64_t, 3> kSizes{64 << 10, 1 << 20, 64 << 20};
constexpr const char* kProven = "proven";

/// GB/s of each repeat, by size.
using Speeds = std::array<std::vector<double>, kSizes.size()>;

/// Messages per repeat: long enough to time, short enough to repeat.
int CountOf(std::int64_t size) {
  return static_cast<int>(std::clamp<std::int64_t>((std::int64_t{1} << 30) / size, 8, 4000));
}

struct Arguments {
  std::vector<std::string> tls;
  std::string perftest;
  std::string net = "lo";
  Verify verify = Verify::kHeader;
  std::chrono::microseconds spin{0};
  std::size_t buffers = kWindow;  // in turn
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--tls") {
      arguments.tls.push_back(value);
    } else if (name == "--perftest") {
      arguments.perftest = value;
    } else if (name == "--net") {
      arguments.net = value;
    } else if (name == "--spin") {
      arguments.spin = std::chrono::microseconds(std::stoi(value));
    } else if (name == "--buffers") {
      arguments.buffers = static_cast<std::size_t>(std::clamp(std::stoi(value), 1, kWindow));
    } else if (name == "--verify" && (value == "off" || value == "header" || value == "payload")) {
      arguments.verify = value == "off"      ? Verify::kOff
                         : value == "header" ? Verify::kHeader
                                             : Verify::kPayload;
    } else {
      throw std::invalid_argument(name + " " + value +
                                  ": expected --tls, --perftest, --net, --spin, --buffers or "
                                  "--verify");
    }
  }
  if (arguments.tls.empty()) arguments.tls = {"posix,cma"};
  if (arguments.perftest.empty()) arguments.perftest = arguments.tls.back();
  return arguments;
}

void Write(int descriptor, const void* data, std::size_t size) {
  if (::write(descriptor, data, size) != static_cast<ssize_t>(size))
    throw std::runtime_error("the other process is gone");
}

std::vector<std::byte> Read(int descriptor) {
  std::vector<std::byte> bytes(4096);
  const ssize_t size = ::read(descriptor, bytes.data(), bytes.size());
  if (size <= 0) throw std::runtime_error("the other process is gone");
  bytes.resize(static_cast<std::size_t>(size));
  return bytes;
}

/// The two ends of one measurement.
struct Ends {
  std::array<Descriptor, 2> control;
  std::array<Descriptor, 2> tensors;  // of the plane over proven TCP
};

std::array<Descriptor, 2> ControlPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) throw std::runtime_error("socketpair");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::unique_ptr<Plane> PlaneOf(const Arguments& arguments, const std::string& tls, ProcessId self,
                               TensorStore& store, Descriptor tensors) {
  UcxOptions options;
  options.self = self;
  options.names = {"n0", "n1"};
  options.tls = tls;
  options.net_devices = arguments.net;
  options.verify = arguments.verify;
  options.spin = arguments.spin;
  options.store = &store;
  options.peer_failed = [](ProcessId, const std::string& reason) {
    std::fprintf(stderr, "%s\n", reason.c_str());
    std::_Exit(1);
  };
  if (tls != kProven) return std::make_unique<UcxPlane>(options);
  TcpOptions tcp{options, {}, "proven tcp"};
  tcp.connections.push_back({1 - self, std::move(tensors), {}});
  return std::make_unique<TcpPlane>(std::move(tcp));
}

/// One end, connected over `control`.
struct Side {
  Side(const Arguments& arguments, const std::string& tls, ProcessId self, Ends& ends)
      : control(ends.control[static_cast<std::size_t>(self)].get()),
        plane(PlaneOf(arguments, tls, self, store,
                      std::move(ends.tensors[static_cast<std::size_t>(self)]))) {
    store.Attach(plane.get());
    const auto mine = plane->address();
    Write(control, mine.data(), mine.size());
    const auto other = Read(control);
    plane->Connect(self == 0 ? std::vector{mine, other} : std::vector{other, mine});
  }
  ~Side() {
    char end = 0;
    plane->Leave();
    Write(control, &end, 1);
    Read(control);
    store.Detach();
    plane->Close();
  }

  int control;
  TensorStore store{nullptr};
  std::unique_ptr<Plane> plane;
};

using Keys = std::array<std::uint64_t, kWindow>;

void RunHome(const Arguments& arguments, const std::string& tls, Ends& ends) {
  Side side(arguments, tls, 1, ends);
  const int control = side.control;
  for (const std::int64_t size : kSizes) {
    Keys keys;
    std::vector<TensorReference> references;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Buffer buffer = Buffer::Allocate({size}, DType::kUInt8);
      std::memset(buffer.data(), static_cast<int>(i) + 1, buffer.num_bytes());
      references.push_back(side.store.Refer(buffer));
      keys[i] = references.back().key;
    }
    Write(control, keys.data(), sizeof keys);
    Read(control);  // waits until the other end is done
    for (const TensorReference& reference : references) side.store.Resolve(reference);
  }
}

/// Pulls `count` tensors, kWindow at a time, in turn into the same buffers. Returns seconds.
class Puller {
 public:
  Puller(Side& side, const Keys& keys, std::int64_t size, std::size_t buffers)
      : side_(side), keys_(keys) {
    for (std::size_t i = 0; i < buffers; ++i)
      buffers_.push_back(Buffer::Zeros({size}, DType::kUInt8));
  }

  double Run(int count) {
    started_ = 0;
    ended_ = 0;
    count_ = count;
    const Clock::time_point begin = Clock::now();
    std::unique_lock lock(mutex_);
    for (std::size_t i = 0; i < kWindow; ++i) Start(i);
    done_.wait(lock, [this] { return ended_ == count_; });
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  bool right() const {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const std::byte* data = buffers_[i].data();
      const auto expected = static_cast<std::byte>(i + 1);
      if (std::any_of(data, data + buffers_[i].num_bytes(),
                      [&](std::byte it) { return it != expected; }))
        return false;
    }
    return true;
  }

 private:
  void Start(std::size_t i) {
    ++started_;
    side_.plane->Pull(keys_[i % buffers_.size()], 0,
                      {1,
                       {},
                       buffers_[i % buffers_.size()],
                       "benchmark",
                       [this, i] {
                         const std::lock_guard lock(mutex_);
                         if (++ended_ == count_) done_.notify_all();
                         if (started_ < count_) Start(i);
                       },
                       [](const Failure& failure) {
                         std::fprintf(stderr, "%s\n", failure.text.c_str());
                         std::_Exit(1);
                       }});
  }

  Side& side_;
  const Keys keys_;
  std::vector<Buffer> buffers_;
  std::mutex mutex_;
  std::condition_variable done_;
  int started_ = 0;
  int ended_ = 0;
  int count_ = 0;
};

/// Runs ucx_perftest once. Returns GB/s, or 0 if it fails.
double Perftest(const Arguments& arguments, std::int64_t size, int port) {
  const std::string environment =
      "env UCX_TLS=" + arguments.perftest + " UCX_NET_DEVICES=" + arguments.net + " ";
  const std::string at = " -p " + std::to_string(port);
  const int count = CountOf(size);
  std::thread server([&] {
    const std::string command = environment + "timeout 60 ucx_perftest" + at + " >/dev/null 2>&1";
    static_cast<void>(!std::system(command.c_str()));
  });
  // Tries again until the server listens. CSV: iterations, percentile latency, average
  // latency, overall latency, MB/s now, MB/s overall, ...
  const std::string command = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; " + environment +
                              "timeout 60 ucx_perftest localhost" + at + " -t tag_bw -f -v -O " +
                              std::to_string(kWindow) + " -s " + std::to_string(size) + " -n " +
                              std::to_string(count) + " -w " + std::to_string(count / 4) +
                              " 2>/dev/null && break; done";
  double result = 0;
  if (std::FILE* const pipe = ::popen(command.c_str(), "r")) {
    char line[512];
    while (std::fgets(line, sizeof line, pipe) != nullptr) {
      double value[6];
      if (std::sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf", &value[0], &value[1], &value[2], &value[3],
                      &value[4], &value[5]) == 6)
        result = value[5] * (1 << 20) / 1e9;
    }
    ::pclose(pipe);
  }
  server.join();
  return result;
}

Speeds RunPuller(const Arguments& arguments, const std::string& tls, Ends& ends) {
  Speeds all;
  Side side(arguments, tls, 0, ends);
  for (std::size_t k = 0; k < kSizes.size(); ++k) {
    const std::int64_t size = kSizes[k];
    Keys keys;
    std::memcpy(keys.data(), Read(side.control).data(), sizeof keys);
    Puller puller(side, keys, size, arguments.buffers);
    const int count = CountOf(size);
    puller.Run(std::max(kWindow, count / 4));
    for (int i = 0; i < kRepeats; ++i)
      all[k].push_back(static_cast<double>(size) * count / puller.Run(count) / 1e9);
    if (!puller.right()) throw std::runtime_error("wrong bytes arrived");
    const char done = 0;
    Write(side.control, &done, 1);
  }
  return all;
}

/// Runs one round of one plane in two new processes: UCX must not be used before a fork.
void Measure(const Arguments& arguments, const std::string& tls, Speeds& speeds) {
  Ends ends{ControlPair(), {}};
  if (tls == kProven) {
    auto [one, other] = testing::TcpPair();
    ends.tensors = {std::move(one), std::move(other)};
  }
  const std::array<Descriptor, 2> results = ControlPair();
  const pid_t puller = ::fork();
  if (puller == 0) {
    const pid_t home = ::fork();
    if (home == 0) {
      RunHome(arguments, tls, ends);
      std::_Exit(0);
    }
    const Speeds measured = RunPuller(arguments, tls, ends);
    for (const auto& of_size : measured)
      Write(results[1].get(), of_size.data(), of_size.size() * sizeof(double));
    ::waitpid(home, nullptr, 0);
    std::_Exit(0);
  }
  for (auto& of_size : speeds) {
    const std::vector<std::byte> bytes = Read(results[0].get());
    std::vector<double> round(bytes.size() / sizeof(double));
    std::memcpy(round.data(), bytes.data(), round.size() * sizeof(double));
    of_size.insert(of_size.end(), round.begin(), round.end());
  }
  ::waitpid(puller, nullptr, 0);
}

void Print(const std::string& name, std::int64_t size, const std::vector<double>& speeds,
           double perftest) {
  const auto [low, high] = std::minmax_element(speeds.begin(), speeds.end());
  const double median = Median(speeds);
  std::printf("%12lld %-20s %8.2f %8.2f .. %6.2f %9.2f\n", static_cast<long long>(size),
              name.c_str(), median, *low, *high, perftest > 0 ? median / perftest : 0.0);
}

int Main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::vector<Speeds> planes(arguments.tls.size());
  Speeds perftest;
  int port = 21000 + static_cast<int>(::getpid()) % 900;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < planes.size(); ++i) Measure(arguments, arguments.tls[i], planes[i]);
    for (std::size_t k = 0; k < kSizes.size(); ++k)
      perftest[k].push_back(Perftest(arguments, kSizes[k], ++port));
  }
  std::array<double, 3> load{};
  static_cast<void>(::getloadavg(load.data(), 3));
  std::printf("two processes, window %d, buffers %zu, rounds %d x %d; load %.1f\n", kWindow,
              arguments.buffers, kRounds, kRepeats, load[0]);
  std::printf("%12s %-20s %8s %18s %9s\n", "bytes", "over", "GB/s", "from .. to", "perftest");
  for (std::size_t k = 0; k < kSizes.size(); ++k) {
    const double other = Median(perftest[k]);
    for (std::size_t i = 0; i < planes.size(); ++i)
      Print(arguments.tls[i], kSizes[k], planes[i][k], other);
    Print("ucx_perftest " + arguments.perftest, kSizes[k], perftest[k], other);
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::RestoreSignalHandlers();
  return troupe::bench::ExitCodeOf("bench_data_plane",
                                   [=] { return troupe::bench::Main(argc, argv); });
}
