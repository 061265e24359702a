#include "transport/tcp/engine.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <sys/socket.h>
#include <utility>

#include "transport/tcp/link.hpp"
#include "transport/tcp/peer.hpp"

namespace troupe {

static const std::string kFailed = "its data connection failed: ";

struct TcpEngine::Peer {
  Peer(ProcessId number, const std::string& name, ProcessId self, Verify verify, TcpConnection made,
       PlaneCounters& counters, PeerRequests requests)
      : process(number),
        writer(WireKey(made.secret, {}, self), verify),
        messages(number, name, writer, counters, std::move(requests)),
        link(std::move(made.socket),
             FrameReader(WireKey(made.secret, {}, number), verify, messages), writer) {}

  const ProcessId process;
  FrameWriter writer;
  TcpPeer messages;
  TcpLink link;
  bool watched = false;  // by the poller
  bool wants_write = false;
  Failure failure;  // empty: the peer works
};

TcpEngine::TcpEngine(TcpOptions& options, Poller& poller, Pump& pump,
                     std::shared_ptr<PlaneCounters> counters)
    : PlaneEngine(options, pump, std::move(counters)), poller_(poller) {
  peers_.resize(options.names.size());
  for (TcpConnection& connection : options.connections) {
    const ProcessId process = connection.peer;
    if (process < 0 || process >= static_cast<ProcessId>(peers_.size()) ||
        process == options.self || peers_[static_cast<std::size_t>(process)] != nullptr) {
      throw std::invalid_argument(
          "data plane: expected one connection to each other process, got "
          "one to process " +
          std::to_string(process));
    }
    const int no_delay = 1;  // fails on a local connection, which has no delay
    static_cast<void>(::setsockopt(connection.socket.get(), IPPROTO_TCP, TCP_NODELAY, &no_delay,
                                   sizeof no_delay));
    peers_[static_cast<std::size_t>(process)] = std::make_unique<Peer>(
        process, NameOf(process), options.self, options.verify, std::move(connection), *counters_,
        PeerRequests{[this](const PullRequest& request) { HandlePull(request); },
                     [this, process](std::uint64_t key, std::uint64_t weight) {
                       HandleReturn(process, key, weight);
                     }});
  }
  poller_.Start(
      {[this] { return Flush(); },
       [this](int tag, bool readable, bool writable) { Ready(tag, readable, writable); }});
}

TcpEngine::~TcpEngine() = default;

void TcpEngine::Connect() {
  for (const auto& peer : peers_) {
    if (peer == nullptr || !peer->failure.empty() || closing_ || !abort_cause_.empty()) continue;
    poller_.Add(peer->link.descriptor(), peer->process);
    peer->watched = true;
    ++counters_->peers_connected;
  }
}

bool TcpEngine::Reaches(ProcessId process) const {
  const auto& peer = peers_[static_cast<std::size_t>(process)];
  return peer != nullptr && !closing_ && abort_cause_.empty() && peer->failure.empty();
}

void TcpEngine::Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) {
  if (Reaches(to)) PeerAt(to).messages.Send({label, std::move(buffer), std::move(sent)});
}

void TcpEngine::Receive(Reception reception) {
  const auto& peer = peers_[static_cast<std::size_t>(reception.from)];
  const Failure failure =
      peer == nullptr ? Failure("it has no connection for tensors") : peer->failure;
  const Failure refusal = ReceiveError(NameOf(reception.from), failure, reception);
  if (!refusal.empty()) return reception.failed(refusal);
  peer->messages.Receive(std::move(reception));
}

void TcpEngine::Return(ProcessId home, std::uint64_t key, std::uint64_t weight) {
  if (Reaches(home)) PeerAt(home).messages.Return(key, weight);
}

void TcpEngine::RequestSlice(const PullRequest& request, ProcessId home) {
  if (Reaches(home)) PeerAt(home).messages.RequestPull(request);
}

void TcpEngine::Refuse(const PullRequest& request) {
  if (Reaches(request.from)) PeerAt(request.from).messages.Refuse(request);
}

void TcpEngine::PeerFailed(ProcessId process, const Failure& reason) {
  Peer& peer = PeerAt(process);
  if (!peer.failure.empty()) return;
  peer.failure = reason;
  StopWatching(peer);
  peer.link.Close();
  peer.messages.FailAll(
      [&](const Reception& it) { return ReceiveError(NameOf(process), reason, it); });
  ReportFailure(process, reason.text);
}

void TcpEngine::StopWatching(Peer& peer) {
  if (std::exchange(peer.watched, false)) poller_.Remove(peer.link.descriptor());
}

void TcpEngine::Abort(const Failure& cause) {
  if (!abort_cause_.empty()) return;
  abort_cause_ = cause.empty() ? Failure("the job was aborted") : cause;
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    StopWatching(*peer);
    peer->messages.FailAll([&](const Reception&) { return abort_cause_; });
  }
}

void TcpEngine::Close() {
  closing_ = true;
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    StopWatching(*peer);
    peer->messages.FailAll([&](const Reception& it) {
      return ReceiveError(NameOf(peer->process), peer->failure, it);
    });
    peer->link.Close();
  }
}

bool TcpEngine::Flush() {
  bool wrote = false;
  for (const auto& peer : peers_) {
    if (peer != nullptr && peer->watched && !peer->link.blocked() && !peer->writer.empty())
      wrote |= Write(*peer);
  }
  return wrote;
}

void TcpEngine::Ready(ProcessId process, bool readable, bool writable) {
  Peer& peer = PeerAt(process);
  if (writable && peer.watched) Write(peer);
  if (!readable || !peer.watched) return;
  try {
    peer.link.Read();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const FrameError& error) {
    PeerFailed(process, {kFailed + error.what(), FailureKind::kCheck});
  } catch (const std::exception& error) {
    PeerFailed(process, {kFailed + error.what(), FailureKind::kLost});
  }
}

bool TcpEngine::Write(Peer& peer) {
  bool wrote = false;
  try {
    wrote = peer.link.Write([this](OutMessage message) {
      counters_->bytes_sent += message.buffer.num_bytes();
      ++counters_->messages_sent;
      message.buffer = Buffer();  // before `sent`, which may look at its use_count()
      if (message.sent) message.sent();
    });
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    PeerFailed(peer.process, {kFailed + error.what(), FailureKind::kLost});
    return true;
  }
  if (peer.link.blocked() != peer.wants_write) {
    peer.wants_write = peer.link.blocked();
    poller_.Watch(peer.link.descriptor(), peer.process, peer.wants_write);
  }
  return wrote;
}

}  // namespace troupe
