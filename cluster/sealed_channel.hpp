// A proven connection that carries payloads both ways in sealed frames, without blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/handshake.hpp"
#include "cluster/sealed_frame.hpp"
#include "cluster/tcp_progress.hpp"

namespace troupe {

class SealedChannel {
 public:
  SealedChannel(ProvenSocket connection, Side self);

  int fd() const { return socket_.fd(); }
  /// The events to poll for.
  short events() const;
  /// Queues a payload for the next Serve(). Throws WireError if it is too large.
  void Send(std::span<const std::byte> payload) { output_.push_back(sealer_.Seal(payload)); }
  /// Writes and reads as much as possible. Never throws: any error closes the channel.
  void Serve();
  /// The received payloads, in order; also after the end.
  std::optional<std::vector<std::byte>> NextPayload();
  bool open() const { return end_.empty(); }
  /// Why it is closed: "it closed the connection". Empty while it is open.
  const std::string& end() const { return end_; }
  /// Drops what has been received, and sends nothing more.
  void Close(const std::string& why);
  /// Has the system look, every few seconds, whether the peer's machine is there while nothing is sent.
  void KeepAlive();
  bool flushed() const { return output_.empty(); }
  /// For how long no sent byte has been acknowledged, as of the last Serve.
  std::chrono::nanoseconds stuck(Deadline now) const { return tcp_.stuck(now); }

  Address local_address() const { return local_; }
  Address peer_address() const { return peer_; }

 private:
  const Socket& tcp_socket() const { return wire_ ? wire_ : socket_; }
  void ReadSome();
  void WriteSome();

  Socket socket_;
  Socket wire_;  ///< with TLS, the TCP socket to query
  TcpProgress tcp_{std::chrono::steady_clock::now()};
  Address local_;
  Address peer_;
  FrameSealer sealer_;
  FrameOpener opener_;
  std::deque<std::vector<std::byte>> output_;  ///< frames; the first may be half sent
  std::deque<std::vector<std::byte>> input_;   ///< payloads
  std::string end_;
};

/// Carries the messages of one protocol. `Protocol` has the type Message and the functions Encode and
/// Decode, which throws WireError.
template <class Protocol>
class MessageChannel : public SealedChannel {
 public:
  using Message = typename Protocol::Message;
  using SealedChannel::SealedChannel;

  /// Queues a message for the next Serve(). Throws WireError if it is too large.
  void Send(const Message& message) { SealedChannel::Send(Protocol::Encode(message)); }
  /// The received messages, in order; also after the end. A malformed one closes the channel.
  std::optional<Message> Next() {
    const auto payload = NextPayload();
    if (!payload) return std::nullopt;
    try {
      return Protocol::Decode(*payload);
    } catch (const WireError& error) {
      Close(error.what());
      return std::nullopt;
    }
  }
};

}  // namespace troupe
