#include "cluster/tls_relay.hpp"

#include <algorithm>
#include <poll.h>
#include <utility>

#include "cluster/poll_set.hpp"
#include "cluster/signals_blocked.hpp"

namespace troupe {

using std::chrono::steady_clock;

TlsRelay::TlsRelay() {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
}

TlsRelay::~TlsRelay() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_up_.Signal();
  thread_.join();
}

void TlsRelay::Add(TlsSession session, Socket application) {
  {
    const std::lock_guard lock(mutex_);
    // After the relay has ended, the session is destroyed and the application sees a closed
    // connection.
    if (!ended_) added_.emplace_back(std::move(session), std::move(application));
  }
  wake_up_.Signal();
}

void TlsRelay::Flush(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const std::uint64_t mine = ++flushes_requested_;
  wake_up_.Signal();
  changed_.wait_until(lock, deadline, [&] { return ended_ || flushes_done_ >= mine; });
}

void TlsRelay::Run() {
  PollSet polls;
  try {
    while (TakeRequests()) Round(polls);
  } catch (const std::exception&) {
    // The system cannot even poll. Encrypted connections cannot continue; their users see them end.
  }
  for (TlsLink& link : links_) link.Close();
  links_.clear();
  const std::lock_guard lock(mutex_);
  ended_ = true;
  added_.clear();
  changed_.notify_all();
}

bool TlsRelay::TakeRequests() {
  const std::lock_guard lock(mutex_);
  links_.splice(links_.end(), added_);
  flush_ = flushes_requested_;
  if (flushes_done_ != flushed_) {
    flushes_done_ = flushed_;
    changed_.notify_all();
  }
  return !stopping_;
}

void TlsRelay::Round(PollSet& polls) {
  const bool flushing = flush_ != flushed_;
  bool more = false;
  bool blocked = false;
  polls.Clear();
  polls.Add(wake_up_.fd(), POLLIN);
  for (const TlsLink& link : links_) {
    link.AddTo(polls);
    more = more || link.more();
    blocked = blocked || link.blocked();
  }
  const bool immediately = more || (flushing && !blocked);
  polls.Wait(immediately ? steady_clock::now() : Deadline::max());
  if (polls.Ready(wake_up_.fd()) != 0) wake_up_.Clear();
  for (TlsLink& link : links_)
    if (link.Ready(polls) || link.more() || flushing) link.Serve(polls);
  links_.remove_if([](const TlsLink& link) { return link.over(); });
  if (std::all_of(links_.begin(), links_.end(), [](const TlsLink& l) { return l.flushed(); }))
    flushed_ = flush_;
}

}  // namespace troupe
