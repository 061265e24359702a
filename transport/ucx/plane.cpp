#include "transport/ucx/plane.hpp"

#include <atomic>
#include <csignal>
#include <future>
#include <optional>
#include <stdexcept>
#include <utility>

#include "transport/ucx/engine.hpp"
#include "transport/ucx/handles.hpp"
#include "transport/ucx/port_filter.hpp"
#include "transport/ucx/wire.hpp"

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
  if (first < 1 || last > 65535 || first > last) {
    throw std::invalid_argument("data plane: expected a port range such as 7500-7600, got \"" +
                                range + "\"");
  }
}

UcxOptions Checked(UcxOptions options) {
  CheckPortRange(options.port_range);
  return options;
}

std::unique_ptr<UcxWorker> MakeWorker(UcxContext& context,
                                      const std::vector<std::string>& admitted) {
  if (admitted.empty()) return std::make_unique<UcxWorker>(context);
  const std::vector<int> before = ListeningSockets();
  auto worker = std::make_unique<UcxWorker>(context);
  AdmitOnlyBySockets(before, admitted);
  return worker;
}

}  // namespace

struct UcxPlane::Parts {
  explicit Parts(UcxOptions given)
      : options(Checked(std::move(given))),
        context(std::make_unique<UcxContext>(
            UcxSettings{options.tls, options.net_devices, options.port_range})),
        reads_device_memory(options.verify != Verify::kPayload && context->HasCuda()),
        worker(MakeWorker(*context, options.admitted)),
        pump(std::make_unique<Pump>(*worker, options.spin)),
        engine(std::make_unique<UcxEngine>(options, salt, *worker, *pump, counters)) {
    engine->ReadsDeviceMemory(reads_device_memory);
  }

  /// After each round of the pump.
  std::optional<Pump::Clock::time_point> AfterRound() {
    auto next = engine->AfterRound();
    if (!close_begin || close_ended) return next;
    const auto now = Pump::Clock::now();
    const bool hurry = (options.abort != nullptr && options.abort->raised()) || !engine->settled();
    if (engine->quiet() || now >= *close_begin + (hurry ? kAbortedCloseTime : kCloseTime)) {
      close_ended = true;
      closed.set_value();
      return next;
    }
    // Often, since the end of a forced close is not always an event that wakes the thread.
    return now + std::chrono::milliseconds(5);
  }

  const UcxOptions options;
  const WireSalt salt = DrawSalt();
  const std::shared_ptr<PlaneCounters> counters = std::make_shared<PlaneCounters>();
  std::vector<std::byte> address;
  std::vector<std::string> lanes;  // by process, once connected
  std::atomic<bool> dead = false;  // the pump's thread ended with an error
  bool close_called = false;
  bool abandoned = false;                              // the pump's thread did not answer
  std::optional<Pump::Clock::time_point> close_begin;  // used by the pump's thread
  bool close_ended = false;                            // used by the pump's thread
  std::promise<void> closed;

  // Destroyed in reverse order, or abandoned together.
  std::unique_ptr<UcxContext> context;
  const bool reads_device_memory;
  std::unique_ptr<UcxWorker> worker;
  std::unique_ptr<Pump> pump;
  std::unique_ptr<UcxEngine> engine;
  std::shared_ptr<void> subscription;  // its callback uses the pump
};

UcxPlane::UcxPlane(UcxOptions options) : UcxPlane(std::make_unique<Parts>(std::move(options))) {}

UcxPlane::UcxPlane(std::unique_ptr<Parts> made)
    : PlaneDoor(made->options, made->counters), parts_(std::move(made)) {
  Parts& parts = *parts_;
  Open(*parts.pump, *parts.engine);
  parts.address = Pack({parts.salt, parts.worker->Address()});
  const auto died = [&parts](const std::string& error) {
    const std::string cause = CauseOf(parts.options, error);
    parts.dead = true;
    parts.engine->Abandon(cause);
    if (parts.options.abort != nullptr) parts.options.abort->Raise(cause);
  };
  parts.pump->Start({[&parts] { return parts.AfterRound(); }, died});
  parts.subscription = AbortWith(parts.options.abort.get());
}

UcxPlane::~UcxPlane() {
  Close();
  if (parts_->abandoned) static_cast<void>(parts_.release());  // its thread still runs
}

std::vector<std::byte> UcxPlane::address() const { return parts_->address; }

void UcxPlane::Connect(std::vector<std::vector<std::byte>> addresses) {
  Parts& parts = *parts_;
  CheckAddresses(addresses.size());
  const auto done = std::make_shared<std::promise<std::vector<std::string>>>();
  std::future<std::vector<std::string>> lanes = done->get_future();
  const bool posted = parts.pump->Post([&parts, done, addresses = std::move(addresses)] {
    try {
      parts.engine->Connect(addresses);
      done->set_value(parts.engine->Lanes());
    } catch (...) {
      done->set_exception(std::current_exception());
    }
  });
  if (!posted) throw std::runtime_error("data plane: expected to connect, but it has ended");
  parts.lanes = lanes.get();  // endpoints are created without waiting for peers
  Connected();
}

std::string UcxPlane::transport(ProcessId peer) const {
  const auto& lanes = parts_->lanes;
  return lanes.empty() ? "" : lanes[static_cast<std::size_t>(peer)];
}

bool UcxPlane::reads_device_memory() const { return parts_->reads_device_memory; }

void UcxPlane::Close() {
  Parts& parts = *parts_;
  if (std::exchange(parts.close_called, true)) return;
  std::future<void> closed = parts.closed.get_future();
  const bool posted = parts.pump->Post([&parts] {
    parts.close_begin = Pump::Clock::now();
    parts.engine->BeginClose();
  });
  // The pump's thread keeps the deadline. If it is stuck in a callback, this thread does.
  const bool answered =
      !posted || closed.wait_for(kCloseTime + kAbortedCloseTime) == std::future_status::ready;
  parts.subscription.reset();
  parts.abandoned = !answered && !parts.dead;
  if (parts.abandoned) return;
  parts.pump->Stop();  // kept, to reject later posts
  if (parts.engine->quiet() && !parts.dead) {
    parts.engine.reset();
    parts.worker.reset();
    parts.context.reset();
  } else {
    // UCX aborts the process if a worker is destroyed with open operations.
    static_cast<void>(parts.engine.release());
    static_cast<void>(parts.worker.release());
    static_cast<void>(parts.context.release());
  }
}

std::string UcxVersion() { return ucp_get_version_string(); }

void RestoreSignalHandlers() {
  for (const int number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) std::signal(number, SIG_DFL);
}

}  // namespace troupe
