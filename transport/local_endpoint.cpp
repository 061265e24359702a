#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "transport/endpoint.hpp"
#include "transport/local_channel.hpp"

namespace troupe {

namespace {

using Lock = std::unique_lock<std::mutex>;

/// What all endpoints of one transport share.
struct Exchange {
  explicit Exchange(int kept_per_pair) : capacity(kept_per_pair) {}

  LocalChannel& ChannelOf(const EndpointName& source, const EndpointName& destination);
  void Close(const EndpointName& name);
  void Fail(const std::string& error);
  /// Runs what remains to be done for a pair, in order. If another thread is at it, or this one
  /// further up its stack, that call does this work, too: so one pair's callbacks never overlap.
  void Drain(LocalChannel& channel) noexcept;
  void DrainAll() noexcept;

  const int capacity;
  std::mutex mutex;  // guards all below; never held while foreign code runs
  // By source and destination. Channels stay for good: names are few, and references remain valid.
  std::map<std::pair<EndpointName, EndpointName>, LocalChannel> channels;
  std::set<EndpointName> open;
  std::set<EndpointName> closed;  // and not opened again
  std::optional<std::string> failure;
};

LocalChannel& Exchange::ChannelOf(const EndpointName& source, const EndpointName& destination) {
  return channels.try_emplace(std::pair(source, destination), source, destination, capacity)
      .first->second;
}

void Exchange::Close(const EndpointName& name) {
  {
    const Lock lock(mutex);
    open.erase(name);
    closed.insert(name);
    for (auto& [pair, channel] : channels) {
      if (pair.first == name) channel.CloseSource();
      if (pair.second == name) channel.CloseDestination();
    }
  }
  DrainAll();
}

void Exchange::Fail(const std::string& error) {
  {
    const Lock lock(mutex);
    failure = error;
    for (auto& [pair, channel] : channels) channel.Fail(error);
  }
  DrainAll();
}

void Exchange::Drain(LocalChannel& channel) noexcept {
  Lock lock(mutex);
  if (channel.draining) return;
  channel.draining = true;
  while (!channel.completions.empty()) {
    std::function<void()> next = std::move(channel.completions.front());
    channel.completions.pop_front();
    lock.unlock();
    next();
    next = nullptr;
    lock.lock();
  }
  channel.draining = false;
}

void Exchange::DrainAll() noexcept {
  std::vector<LocalChannel*> all;
  {
    const Lock lock(mutex);
    for (auto& [pair, channel] : channels)
      if (!channel.completions.empty()) all.push_back(&channel);
  }
  for (LocalChannel* channel : all) Drain(*channel);
}

/// Shares ownership of the exchange, so that an endpoint that goes last does no harm.
class LocalEndpoint final : public Endpoint {
 public:
  LocalEndpoint(std::shared_ptr<Exchange> exchange, EndpointName name)
      : exchange_(std::move(exchange)), name_(std::move(name)) {}
  LocalEndpoint(const LocalEndpoint&) = delete;
  LocalEndpoint& operator=(const LocalEndpoint&) = delete;
  ~LocalEndpoint() override { exchange_->Close(name_); }

  void Send(const EndpointName& peer, Tag tag, Buffer buffer, std::function<void()> sent) override;
  void Receive(const EndpointName& peer, Tag tag, Buffer destination,
               std::function<void(Buffer)> received,
               std::function<void(const std::string& error)> failed) override;

 private:
  const std::shared_ptr<Exchange> exchange_;
  const EndpointName name_;
};

void LocalEndpoint::Send(const EndpointName& peer, Tag tag, Buffer buffer,
                         std::function<void()> sent) {
  if (!buffer.defined())
    throw std::invalid_argument("tag " + std::to_string(tag) + " from \"" + name_ + "\" to \"" +
                                peer + "\": expected a tensor to send, got none");
  const std::shared_ptr<Exchange> exchange = exchange_;
  PendingSend send{tag, std::move(buffer), std::move(sent)};
  Lock lock(exchange->mutex);
  if (exchange->failure) return;
  LocalChannel& channel = exchange->ChannelOf(name_, peer);
  channel.Send(std::move(send));
  lock.unlock();
  exchange->Drain(channel);
}

void LocalEndpoint::Receive(const EndpointName& peer, Tag tag, Buffer destination,
                            std::function<void(Buffer)> received,
                            std::function<void(const std::string& error)> failed) {
  // A callback may destroy this endpoint.
  const std::shared_ptr<Exchange> exchange = exchange_;
  PendingReceive receive{tag, std::move(destination), std::move(received), std::move(failed)};
  Lock lock(exchange->mutex);
  LocalChannel& channel = exchange->ChannelOf(peer, name_);
  channel.Receive(std::move(receive));
  if (exchange->failure) {
    channel.Fail(*exchange->failure);
  } else if (exchange->closed.contains(peer)) {
    channel.CloseSource();
  }
  lock.unlock();
  exchange->Drain(channel);
}

}  // namespace

struct LocalTransport::State {
  explicit State(int capacity) : exchange(std::make_shared<Exchange>(capacity)) {}
  std::shared_ptr<Exchange> exchange;
  std::shared_ptr<void> subscription;
};

LocalTransport::LocalTransport(std::shared_ptr<AbortSignal> abort, int capacity)
    : state_(std::make_shared<State>(capacity)) {
  if (capacity < 1)
    throw std::invalid_argument("local transport: expected a capacity of at least 1, got " +
                                std::to_string(capacity));
  if (abort == nullptr) return;
  state_->subscription =
      abort->Subscribe([weak = std::weak_ptr(state_->exchange)](const std::string& cause) {
        if (const std::shared_ptr<Exchange> exchange = weak.lock()) exchange->Fail(cause);
      });
}

LocalTransport::~LocalTransport() = default;

std::unique_ptr<Endpoint> LocalTransport::Open(const EndpointName& name) {
  const std::shared_ptr<Exchange>& exchange = state_->exchange;
  const Lock lock(exchange->mutex);
  if (!exchange->open.insert(name).second)
    throw std::invalid_argument("endpoint \"" + name + "\": expected a name that is not open yet");
  exchange->closed.erase(name);
  return std::make_unique<LocalEndpoint>(exchange, name);
}

}  // namespace troupe
