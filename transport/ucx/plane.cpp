#include "transport/ucx/plane.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <future>
#include <optional>
#include <stdexcept>
#include <utility>

#include "transport/ucx/engine.hpp"
#include "transport/ucx/handles.hpp"
#include "transport/ucx/pump.hpp"

namespace troupe {
namespace {

/// Throws unless `range` is empty or "A-B" with 1 <= A <= B <= 65535.
void CheckPortRange(const std::string& range) {
  if (range.empty()) return;
  const auto port = [](const std::string& digits) {
    const bool number = !digits.empty() && digits.size() <= 5 &&
                        digits.find_first_not_of("0123456789") == std::string::npos;
    return number ? std::stoi(digits) : 0;
  };
  const std::size_t dash = range.find('-');
  const int first = dash == std::string::npos ? 0 : port(range.substr(0, dash));
  const int last = dash == std::string::npos ? 0 : port(range.substr(dash + 1));
  if (first < 1 || last > 65535 || first > last)
    throw std::invalid_argument("data plane: expected a port range such as 7500-7600, got \"" +
                                range + "\"");
}

UcxOptions Checked(UcxOptions options) {
  CheckPortRange(options.port_range);
  const auto count = static_cast<ProcessId>(options.names.size());
  if (options.self < 0 || options.self >= count)
    throw std::invalid_argument("data plane: expected a process below " + std::to_string(count) +
                                ", got " + std::to_string(options.self));
  return options;
}

}  // namespace

struct UcxPlane::Parts {
  explicit Parts(UcxOptions given)
      : options(Checked(std::move(given))),
        context(std::make_unique<UcxContext>(
            UcxSettings{options.tls, options.net_devices, options.port_range})),
        reads_device_memory(options.verify != Verify::kPayload && context->HasCuda()),
        worker(std::make_unique<UcxWorker>(*context)),
        pump(std::make_unique<UcxPump>(*worker, options.spin)),
        engine(std::make_unique<UcxEngine>(options, salt, *worker, *pump, counters)) {
    engine->ReadsDeviceMemory(reads_device_memory);
  }

  /// After each round of the pump.
  std::optional<UcxPump::Clock::time_point> AfterRound() {
    auto next = engine->AfterRound();
    if (!close_begin || close_ended) return next;
    const auto now = UcxPump::Clock::now();
    const bool hurry = (options.abort != nullptr && options.abort->raised()) || !engine->settled();
    if (engine->quiet() || now >= *close_begin + (hurry ? kAbortedCloseTime : kCloseTime)) {
      close_ended = true;
      closed.set_value();
      return next;
    }
    // Often: what a forced close ends is not always an event that wakes the thread.
    return now + std::chrono::milliseconds(5);
  }

  const UcxOptions options;
  const WireSalt salt = DrawSalt();
  const std::shared_ptr<UcxCounters> counters = std::make_shared<UcxCounters>();
  std::vector<std::byte> address;
  std::string transports;
  std::atomic<bool> connected = false;
  std::atomic<bool> dead = false;  // the pump's thread ended by an error
  bool close_called = false;
  bool left_behind = false;                               // the pump's thread did not answer
  std::optional<UcxPump::Clock::time_point> close_begin;  // of the pump's thread
  bool close_ended = false;                               // likewise
  std::promise<void> closed;

  // Destroyed from the last to the first, or left behind all together.
  std::unique_ptr<UcxContext> context;
  const bool reads_device_memory;
  std::unique_ptr<UcxWorker> worker;
  std::unique_ptr<UcxPump> pump;
  std::unique_ptr<UcxEngine> engine;
  std::shared_ptr<void> subscription;  // its callback uses the pump
};

UcxPlane::UcxPlane(UcxOptions options) : parts_(std::make_unique<Parts>(std::move(options))) {
  Parts& parts = *parts_;
  parts.address = Pack({parts.salt, parts.worker->Address()});
  const auto died = [&parts](const std::string& error) {
    const std::string cause = parts.options.names[static_cast<std::size_t>(parts.options.self)] +
                              ": data plane: " + error;
    parts.dead = true;
    parts.engine->Abandon(cause);
    if (parts.options.abort != nullptr) parts.options.abort->Raise(cause);
  };
  parts.pump->Start({[&parts] { return parts.AfterRound(); }, died});
  if (parts.options.abort == nullptr) return;
  parts.subscription = parts.options.abort->Subscribe([&parts](const std::string& cause) {
    parts.pump->Post([&parts, cause] { parts.engine->Abort(cause); });
  });
}

UcxPlane::~UcxPlane() {
  Close();
  if (parts_->left_behind) static_cast<void>(parts_.release());  // its thread still runs
}

std::vector<std::byte> UcxPlane::address() const { return parts_->address; }

void UcxPlane::Connect(std::vector<std::vector<std::byte>> addresses) {
  Parts& parts = *parts_;
  if (addresses.size() != parts.options.names.size())
    throw std::invalid_argument("data plane: expected " +
                                std::to_string(parts.options.names.size()) + " addresses, got " +
                                std::to_string(addresses.size()));
  if (parts.connected) throw std::logic_error("data plane: expected to be connected once");
  const auto done = std::make_shared<std::promise<std::string>>();
  std::future<std::string> lanes = done->get_future();
  const bool posted = parts.pump->Post([&parts, done, addresses = std::move(addresses)] {
    try {
      parts.engine->Connect(addresses);
      done->set_value(parts.engine->DescribeLanes());
    } catch (...) {
      done->set_exception(std::current_exception());
    }
  });
  if (!posted) throw std::runtime_error("data plane: expected to connect, but it has ended");
  parts.transports = lanes.get();  // endpoints are made without waiting for anybody
  parts.connected = true;
}

std::string UcxPlane::transports() const { return parts_->transports; }

UcxStats UcxPlane::stats() const {
  const UcxCounters& now = *parts_->counters;
  return {now.bytes_sent,        now.bytes_received,  now.messages_sent, now.messages_received,
          now.fetches_in_flight, now.peers_connected, now.strangers};
}

bool UcxPlane::reads_device_memory() const { return parts_->reads_device_memory; }

void UcxPlane::Leave() {
  Parts& parts = *parts_;
  parts.pump->Post([&parts] { parts.engine->Leave(); });
}

void UcxPlane::Close() {
  Parts& parts = *parts_;
  if (std::exchange(parts.close_called, true)) return;
  std::future<void> closed = parts.closed.get_future();
  const bool posted = parts.pump->Post([&parts] {
    parts.close_begin = UcxPump::Clock::now();
    parts.engine->BeginClose();
  });
  // The thread keeps the deadline. Should it be stuck, in somebody's callback, this one does.
  const bool answered =
      !posted || closed.wait_for(kCloseTime + kAbortedCloseTime) == std::future_status::ready;
  parts.subscription.reset();
  parts.left_behind = !answered && !parts.dead;
  if (parts.left_behind) return;
  parts.pump->Stop();  // stays, to answer those who still post
  if (parts.engine->quiet() && !parts.dead) {
    parts.engine.reset();
    parts.worker.reset();
    parts.context.reset();
  } else {
    // UCX aborts the process when a worker goes while something of it is open.
    static_cast<void>(parts.engine.release());
    static_cast<void>(parts.worker.release());
    static_cast<void>(parts.context.release());
  }
}

ProcessId UcxPlane::self() const { return parts_->options.self; }

int UcxPlane::num_processes() const { return static_cast<int>(parts_->options.names.size()); }

void UcxPlane::CheckPeer(ProcessId process, const char* what) const {
  if (process < 0 || process >= num_processes() || process == self())
    throw std::invalid_argument(std::string("data plane: ") + what +
                                ": expected another process of " + std::to_string(num_processes()) +
                                ", got " + std::to_string(process));
  if (!parts_->connected)
    throw std::logic_error(std::string("data plane: ") + what + ": expected to be connected");
}

namespace {

void CheckBuffer(const Buffer& buffer, bool reads_device_memory, const char* what) {
  if (buffer.defined() && !buffer.on_host() && (!reads_device_memory || !buffer.parts().empty()))
    throw std::invalid_argument(
        std::string("data plane: ") + what + ": expected memory of the host" +
        (reads_device_memory ? " or of a device, as a whole" : "") + ", got memory of device " +
        std::to_string(buffer.device()) + (buffer.parts().empty() ? "" : ", in parts"));
  if (!buffer.defined() || !buffer.local())
    throw std::invalid_argument(std::string("data plane: ") + what +
                                ": expected memory of this process, got " +
                                (buffer.defined() ? "a handle to another's" : "none"));
}

void CheckLabel(const Label& label, const char* what) {
  if (label.stream == kPullStream)
    throw std::invalid_argument(std::string("data plane: ") + what +
                                ": expected a stream of the caller's, got the reserved one");
}

}  // namespace

void UcxPlane::Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) {
  CheckPeer(to, "send");
  CheckLabel(label, "send");
  CheckBuffer(buffer, reads_device_memory(), "send");
  Parts& parts = *parts_;
  parts.pump->Post(
      [&parts, to, label, buffer = std::move(buffer), sent = std::move(sent)]() mutable {
        parts.engine->Send(to, label, std::move(buffer), std::move(sent));
      });
}

void UcxPlane::Receive(ProcessId from, Label label, Buffer destination, std::string what,
                       std::function<void()> received,
                       std::function<void(const std::string& error)> failed) {
  CheckPeer(from, "receive");
  CheckLabel(label, "receive");
  CheckBuffer(destination, reads_device_memory(), "receive");
  Parts& parts = *parts_;
  const auto reception = std::make_shared<Reception>(
      Reception{from, label, std::move(destination), what, std::move(received), std::move(failed)});
  if (!parts.pump->Post([&parts, reception] { parts.engine->Receive(std::move(*reception)); }))
    reception->failed(what + ": the data plane of this process is closed");
}

void UcxPlane::Pull(ProcessId home, std::uint64_t key, std::int64_t offset, Buffer destination,
                    std::string what, std::function<void()> received,
                    std::function<void(const std::string& error)> failed) {
  CheckPeer(home, "pull");
  CheckBuffer(destination, reads_device_memory(), "pull");
  Parts& parts = *parts_;
  ++parts.counters->fetches_in_flight;
  const auto reception = std::make_shared<Reception>();
  reception->from = home;
  reception->destination = std::move(destination);
  reception->what = what;
  reception->received = [counters = parts.counters, received = std::move(received)] {
    --counters->fetches_in_flight;
    received();
  };
  reception->failed = [counters = parts.counters,
                       failed = std::move(failed)](const std::string& error) {
    --counters->fetches_in_flight;
    failed(error);
  };
  if (!parts.pump->Post([&parts, key, offset, reception] {
        parts.engine->Pull(key, offset, std::move(*reception));
      })) {
    reception->failed(what + ": the data plane of this process is closed");
  }
}

void UcxPlane::Return(ProcessId home, std::uint64_t key, std::uint64_t weight) {
  // A reference may name any process: who got it has been told by Pull.
  if (home < 0 || home >= num_processes() || home == self() || !parts_->connected) return;
  Parts& parts = *parts_;
  parts.pump->Post([&parts, home, key, weight] { parts.engine->Return(home, key, weight); });
}

std::string UcxVersion() { return ucp_get_version_string(); }

void RestoreSignalHandlers() {
  for (const int number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) std::signal(number, SIG_DFL);
}

}  // namespace troupe
