#include "cluster/tcp_progress.hpp"

#include <cstddef>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace troupe {
namespace {

constexpr std::uint8_t kEstablished = 1;  // TCP_ESTABLISHED, which <linux/tcp.h> does not define

}  // namespace

std::optional<TcpState> ReadTcpState(int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return std::nullopt;
  TcpState state;
  state.established = info.tcpi_state == kEstablished;
  // Older kernels do not report the window. It then counts as open, and unsent bytes are ignored.
  const bool window_known = length >= offsetof(tcp_info, tcpi_snd_wnd) + sizeof info.tcpi_snd_wnd;
  state.window_open = !window_known || info.tcpi_snd_wnd >= info.tcpi_snd_mss;
  // A packet dropped on this machine does not even count as sent.
  state.unacknowledged = info.tcpi_unacked > 0 || (window_known && info.tcpi_notsent_bytes > 0);
  state.acknowledged_bytes = info.tcpi_bytes_acked;
  state.received_segments = info.tcpi_segs_in;
  state.segment_bytes = info.tcpi_snd_mss;
  return state;
}

void TcpProgress::Observe(const TcpState& state, Time now) {
  if (!state.established || !state.unacknowledged || !state.window_open ||
      state.acknowledged_bytes != last_.acknowledged_bytes)
    progress_ = now;
  if (state.received_segments != last_.received_segments) arrival_ = now;
  last_ = state;
}

}  // namespace troupe
