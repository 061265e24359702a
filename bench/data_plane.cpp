// The data plane between two processes against what UCX itself reaches: one process pulls tensors
// of the other, four at a time, into few buffers; then ucx_perftest sends messages of the same size
// over the same transport, four at a time. Both on this machine, in turn.
//
//   bench_data_plane [--tls posix,sysv,cma] [--net lo] [--verify off|header|payload]
//                    [--spin MICROSECONDS] [--buffers 1..4]
//
// ucx_perftest has one buffer on each side, which stays in the caches where it fits; real tensors
// do not. --buffers 1 compares like with like.
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "trace/analyze/median.hpp"
#include "transport/ucx/plane.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWindow = 4;
constexpr int kRepeats = 7;
constexpr int kPerftestRepeats = 3;
constexpr std::array<std::int64_t, 4> kSizes{64 << 10, 1 << 20, 16 << 20, 128 << 20};

/// Messages per repeat: long enough to time, short enough to repeat.
int CountOf(std::int64_t size) {
  return static_cast<int>(std::clamp<std::int64_t>((std::int64_t{1} << 30) / size, 8, 4000));
}

struct Arguments {
  std::string tls = "posix,sysv,cma";
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
      arguments.tls = value;
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
                                  ": expected --tls, --net, --spin, --buffers or --verify");
    }
  }
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

UcxOptions OptionsOf(const Arguments& arguments, ProcessId self, TensorStore& store) {
  UcxOptions options;
  options.self = self;
  options.names = {"n0", "n1"};
  options.tls = arguments.tls;
  options.net_devices = arguments.net;
  options.verify = arguments.verify;
  options.spin = arguments.spin;
  options.store = &store;
  options.peer_failed = [](ProcessId, const std::string& reason) {
    std::fprintf(stderr, "%s\n", reason.c_str());
    std::_Exit(1);
  };
  return options;
}

/// One end, connected over `control`.
struct Side {
  Side(const Arguments& arguments, ProcessId self, int socket)
      : control(socket), plane(OptionsOf(arguments, self, store)) {
    store.Attach(&plane);
    const auto mine = plane.address();
    Write(control, mine.data(), mine.size());
    const auto other = Read(control);
    plane.Connect(self == 0 ? std::vector{mine, other} : std::vector{other, mine});
  }
  ~Side() {
    char end = 0;
    plane.Leave();
    Write(control, &end, 1);
    Read(control);
    store.Detach();
    plane.Close();
  }

  int control;
  TensorStore store{nullptr};
  UcxPlane plane;
};

using Keys = std::array<std::uint64_t, kWindow>;

void RunHome(const Arguments& arguments, int control) {
  Side side(arguments, 1, control);
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
    Read(control);  // until the other one has done
    for (const TensorReference& reference : references) side.store.Resolve(reference);
  }
}

/// Pulls `count` tensors, kWindow at a time, in turn into the same buffers; seconds.
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
    side_.plane.Pull(
        1, keys_[i % buffers_.size()], 0, buffers_[i % buffers_.size()], "benchmark",
        [this, i] {
          const std::lock_guard lock(mutex_);
          if (++ended_ == count_) done_.notify_all();
          if (started_ < count_) Start(i);
        },
        [](const std::string& error) {
          std::fprintf(stderr, "%s\n", error.c_str());
          std::_Exit(1);
        });
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

/// One run of ucx_perftest; GB/s, or 0 if it did not work.
double Perftest(const Arguments& arguments, std::int64_t size, int port) {
  const std::string environment =
      "env UCX_TLS=" + arguments.tls + " UCX_NET_DEVICES=" + arguments.net + " ";
  const std::string at = " -p " + std::to_string(port);
  const int count = CountOf(size);
  std::thread server([&] {
    const std::string command = environment + "timeout 60 ucx_perftest" + at + " >/dev/null 2>&1";
    static_cast<void>(!std::system(command.c_str()));
  });
  // Tries again while the server does not listen yet. CSV: iterations, percentile latency, average
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

/// GB/s of each repeat, by size.
std::vector<std::vector<double>> RunPuller(const Arguments& arguments, int control) {
  std::vector<std::vector<double>> all;
  Side side(arguments, 0, control);
  std::printf("two processes, window %d, buffers %zu, over %s, medians of %d (ucx_perftest: %d)\n",
              kWindow, arguments.buffers, side.plane.transports().c_str(), kRepeats,
              kPerftestRepeats);
  for (const std::int64_t size : kSizes) {
    Keys keys;
    std::memcpy(keys.data(), Read(control).data(), sizeof keys);
    Puller puller(side, keys, size, arguments.buffers);
    const int count = CountOf(size);
    puller.Run(std::max(kWindow, count / 4));
    std::vector<double> speeds;
    for (int i = 0; i < kRepeats; ++i)
      speeds.push_back(static_cast<double>(size) * count / puller.Run(count) / 1e9);
    if (!puller.right()) throw std::runtime_error("wrong bytes arrived");
    all.push_back(speeds);
    const char done = 0;
    Write(control, &done, 1);
  }
  return all;
}

int Main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) throw std::runtime_error("socketpair");
  const pid_t child = ::fork();  // before anything of UCX
  if (child < 0) throw std::runtime_error("fork");
  ::close(ends[child != 0 ? 1 : 0]);
  if (child == 0) {
    RunHome(arguments, ends[1]);
    return 0;
  }
  const auto ours = RunPuller(arguments, ends[0]);
  ::waitpid(child, nullptr, 0);

  std::printf("%12s %12s %19s %14s %7s\n", "bytes", "ours GB/s", "from .. to", "perftest GB/s",
              "ratio");
  int port = 20000 + static_cast<int>(::getpid()) % 20000;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    std::vector<double> theirs;
    for (int k = 0; k < kPerftestRepeats; ++k)
      theirs.push_back(Perftest(arguments, kSizes[i], ++port));
    const auto [low, high] = std::minmax_element(ours[i].begin(), ours[i].end());
    const double mine = Median(ours[i]);
    const double other = Median(theirs);
    std::printf("%12lld %12.2f %9.2f .. %6.2f %14.2f %7.2f\n", static_cast<long long>(kSizes[i]),
                mine, *low, *high, other, other > 0 ? mine / other : 0.0);
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::RestoreSignalHandlers();
  try {
    return troupe::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_data_plane: %s\n", error.what());
    return 1;
  }
}
