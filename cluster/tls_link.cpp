#include "cluster/tls_link.hpp"

#include <poll.h>
#include <utility>

namespace troupe {

using Status = TlsSession::Status;

TlsLink::TlsLink(TlsSession session, Socket application)
    : session_(std::move(session)), application_(std::move(application)) {}

void TlsLink::AddTo(PollSet& polls) const {
  // A descriptor polled for no events still wakes the loop when it breaks. So each is left out
  // while nothing can be done about that.
  if (application_) {
    short events = 0;
    if (!application_ended_ && !to_wire_.full()) events |= POLLIN;
    if (!to_application_.empty()) events |= POLLOUT;
    if (events != 0 || (application_ended_ && !application_gone_))
      polls.Add(application_.fd(), events);
  }
  if (broken_ || peer_gone_) return;
  short events = 0;
  if (reads_ && !to_application_.full()) events |= POLLIN;
  if (!reads_) events |= POLLRDHUP;
  if (wants_write_) events |= POLLOUT;
  if (events != 0) polls.Add(session_.socket().fd(), events);
}

bool TlsLink::Ready(const PollSet& polls) const {
  return polls.Ready(session_.socket().fd()) != 0 ||
         (application_ && polls.Ready(application_.fd()) != 0);
}

void TlsLink::Serve(const PollSet& polls) {
  const short ended = POLLRDHUP | POLLHUP | POLLERR;
  if (application_ && (polls.Ready(application_.fd()) & (POLLHUP | POLLERR)) != 0)
    application_gone_ = true;
  const bool wire_ended = (polls.Ready(session_.socket().fd()) & ended) != 0;
  wants_write_ = false;
  FromApplication();
  ToWire();
  FromWire();
  ToApplication();
  // Nothing can arrive between a close_notify and the end of TCP.
  if (wire_ended && !reads_) peer_gone_ = true;
  Conclude();
}

void TlsLink::FromApplication() {
  quiet_ = true;
  if (!application_ || application_ended_ || to_wire_.full()) {
    quiet_ = !application_ || application_ended_;
    return;
  }
  try {
    const auto n = application_.TryRead(to_wire_.room());
    if (!n) return;
    to_wire_.Added(*n);
    quiet_ = *n == 0;
    application_ended_ = *n == 0;
  } catch (const SocketError&) {
    // It was closed with unread bytes.
    application_ended_ = true;
    application_gone_ = true;
  }
}

void TlsLink::ToWire() {
  while (writes_ && !to_wire_.empty()) {
    const auto written = session_.Write(to_wire_.data());
    if (written.status == Status::kAgain) {
      wants_write_ = session_.wants() == POLLOUT;
      return;
    }
    if (written.status == Status::kDone) {
      to_wire_.Remove(written.num_bytes);
    } else {
      // The peer's last bytes may still be unread; FromWire ends the connection.
      writes_ = false;
    }
  }
  if (!writes_) to_wire_.Clear();
  if (writes_ && application_ended_) {
    const Status goodbye = session_.SendGoodbye();
    if (goodbye == Status::kAgain) {
      wants_write_ = true;
      return;
    }
    writes_ = false;
  }
}

void TlsLink::FromWire() {
  more_ = false;
  // Drops received bytes if the application no longer reads. Bounded per round.
  for (int round = 0; reads_ && round < 64; ++round) {
    if (application_gone_) to_application_.Clear();
    if (to_application_.full()) break;
    const auto got = session_.Read(to_application_.room());
    if (got.status == Status::kDone) {
      to_application_.Added(got.num_bytes);
    } else if (got.status == Status::kAgain) {
      wants_write_ = wants_write_ || session_.wants() == POLLOUT;
      return;
    } else {
      reads_ = false;
      broken_ = got.status == Status::kBroken;
      return;
    }
  }
  more_ = reads_;
}

void TlsLink::ToApplication() {
  if (!application_) return;
  try {
    while (!to_application_.empty()) {
      const std::size_t n = application_.TryWrite(to_application_.data());
      if (n == 0) return;
      to_application_.Remove(n);
    }
  } catch (const SocketError&) {
    application_gone_ = true;
    to_application_.Clear();
  }
  if (!reads_ && !end_sent_) {
    application_.FinishWriting();
    end_sent_ = true;
  }
}

void TlsLink::Conclude() {
  if (application_gone_ && application_ended_) {
    application_ = Socket();
    to_application_.Clear();
  }
  if (broken_ || peer_gone_) {
    writes_ = false;
    over_ = to_application_.empty();
    if (!over_) return;
    session_.socket().FinishWriting();
    // Closing this end with unread bytes would reset the application's connection instead of ending
    // it.
    return application_.Discard();
  }
  if (application_ || writes_) return;
  if (!std::exchange(finished_, true)) session_.socket().FinishWriting();
  over_ = !reads_;
}

void TlsLink::Close() noexcept {
  if (broken_ || finished_) return;
  if (writes_) session_.SendGoodbye();
  session_.socket().FinishWriting();
  session_.socket().Discard();
}

}  // namespace troupe
