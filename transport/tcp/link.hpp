// The connection to one peer: moves bytes between its socket and the reader and writer of frames.
#pragma once

#include "transport/descriptor.hpp"
#include "transport/tcp/frame_reader.hpp"
#include "transport/tcp/frame_writer.hpp"

namespace troupe {

/// Runs on one thread and never blocks.
class TcpLink {
 public:
  /// The most that one call reads or writes, so that other connections get their turn.
  static constexpr std::size_t kTurnBytes = std::size_t{2} << 20;

  TcpLink(Descriptor socket, FrameReader reader, FrameWriter& writer)
      : socket_(std::move(socket)), reader_(std::move(reader)), writer_(writer) {}

  int descriptor() const { return socket_.get(); }
  bool open() const { return static_cast<bool>(socket_); }
  /// Whether the socket's buffer is full.
  bool blocked() const { return blocked_; }

  /// Reads the available bytes. Throws FrameError, and std::runtime_error if the connection has
  /// ended.
  void Read();
  /// Writes until the socket's buffer is full. Returns whether any bytes were written. Throws
  /// std::runtime_error.
  bool Write(const std::function<void(OutMessage)>& done);
  void Close() { socket_.Close(); }

 private:
  Descriptor socket_;
  FrameReader reader_;
  FrameWriter& writer_;
  bool blocked_ = false;
};

}  // namespace troupe
