#include "transport/tcp/plane.hpp"

#include <future>
#include <stdexcept>
#include <utility>

#include "transport/tcp/engine.hpp"
#include "transport/tcp/poller.hpp"

namespace troupe {

struct TcpPlane::Parts {
  explicit Parts(TcpOptions given) : options(std::move(given)), medium(options.names.size()) {
    for (const TcpConnection& connection : options.connections) {
      if (connection.peer >= 0 && connection.peer < static_cast<ProcessId>(medium.size()))
        medium[static_cast<std::size_t>(connection.peer)] = options.medium;
    }
    engine = std::make_unique<TcpEngine>(options, poller, pump, counters);
  }

  TcpOptions options;
  std::vector<std::string> medium;  // by process
  const std::shared_ptr<PlaneCounters> counters = std::make_shared<PlaneCounters>();
  bool connected = false;
  bool close_called = false;
  bool abandoned = false;  // the pump's thread did not answer

  // Destroyed in reverse order, or abandoned together.
  Poller poller;
  Pump pump{poller, options.spin};
  std::unique_ptr<TcpEngine> engine;
  std::shared_ptr<void> subscription;  // its callback uses the pump
};

TcpPlane::TcpPlane(TcpOptions options) : TcpPlane(std::make_unique<Parts>(std::move(options))) {}

TcpPlane::TcpPlane(std::unique_ptr<Parts> made)
    : PlaneDoor(made->options, made->counters), parts_(std::move(made)) {
  Parts& parts = *parts_;
  Open(parts.pump, *parts.engine);
  const auto died = [&parts](const std::string& error) {
    const std::string cause = CauseOf(parts.options, error);
    parts.engine->Abort(cause);
    if (parts.options.abort != nullptr) parts.options.abort->Raise(cause);
  };
  parts.pump.Start({[] { return std::optional<Pump::Clock::time_point>(); }, died});
  parts.subscription = AbortWith(parts.options.abort.get());
}

TcpPlane::~TcpPlane() {
  Close();
  if (parts_->abandoned) static_cast<void>(parts_.release());  // its thread still runs
}

std::vector<std::byte> TcpPlane::address() const { return {std::byte{1}}; }

void TcpPlane::Connect(std::vector<std::vector<std::byte>> addresses) {
  Parts& parts = *parts_;
  CheckAddresses(addresses.size());
  if (!parts.pump.Post([&parts] { parts.engine->Connect(); }))
    throw std::runtime_error("data plane: expected to connect, but it has ended");
  parts.connected = true;
  Connected();
}

std::string TcpPlane::transport(ProcessId peer) const {
  return parts_->connected ? parts_->medium[static_cast<std::size_t>(peer)] : "";
}

void TcpPlane::Close() {
  Parts& parts = *parts_;
  if (std::exchange(parts.close_called, true)) return;
  const auto done = std::make_shared<std::promise<void>>();
  std::future<void> closed = done->get_future();
  const bool posted = parts.pump.Post([&parts, done] {
    parts.engine->Close();
    done->set_value();
  });
  parts.abandoned = posted && closed.wait_for(kCloseTime) != std::future_status::ready;
  parts.subscription.reset();
  if (!parts.abandoned) parts.pump.Stop();  // kept, to reject later posts
}

}  // namespace troupe
