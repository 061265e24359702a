// The connection to one peer: moves bytes between its socket and what reads and writes frames.
#pragma once

#include "transport/descriptor.hpp"
#include "transport/tcp/frame_reader.hpp"
#include "transport/tcp/frame_writer.hpp"

namespace troupe {

/// One thread; nothing here waits.
class TcpLink {
 public:
  /// What one call reads or writes at most: then others have their turn.
  static constexpr std::size_t kTurnBytes = std::size_t{2} << 20;

  TcpLink(Descriptor socket, FrameReader reader, FrameWriter& writer)
      : socket_(std::move(socket)), reader_(std::move(reader)), writer_(writer) {}

  int descriptor() const { return socket_.get(); }
  bool open() const { return static_cast<bool>(socket_); }
  /// Whether the socket takes no more for now.
  bool blocked() const { return blocked_; }

  /// Reads what is there. Throws FrameError, and std::runtime_error when the connection has ended.
  void Read();
  /// Writes what the socket takes; whether that was anything. Throws std::runtime_error.
  bool Write(const std::function<void(OutMessage)>& done);
  void Close() { socket_.Close(); }

 private:
  Descriptor socket_;
  FrameReader reader_;
  FrameWriter& writer_;
  bool blocked_ = false;
};

}  // namespace troupe
