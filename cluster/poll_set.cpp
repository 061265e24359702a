#include "cluster/poll_set.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <sys/eventfd.h>

#include "cluster/text.hpp"

namespace troupe {

void PollSet::Clear() {
  entries_.clear();
  std::fill(places_.begin(), places_.end(), 0);
}

void PollSet::Add(int fd, short events) {
  const auto index = static_cast<std::size_t>(fd);
  if (places_.size() <= index) places_.resize(index + 1, 0);
  entries_.push_back({fd, events, 0});
  places_[index] = entries_.size();
}

void PollSet::Wait(Deadline until) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  const int n = poll(entries_.data(), entries_.size(),
                     static_cast<int>(std::clamp<long long>(left.count(), 0, INT_MAX)));
  if (n >= 0) return;
  for (pollfd& entry : entries_) entry.revents = 0;
  // A signal only ends the round early.
  if (errno != EINTR) throw SocketError("cannot wait for sockets: " + SystemWords(errno), errno);
}

short PollSet::Ready(int fd) const {
  const auto index = static_cast<std::size_t>(fd);
  if (fd < 0 || index >= places_.size() || places_[index] == 0) return 0;
  return entries_[places_[index] - 1].revents;
}

WakeUp::WakeUp() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_) throw SocketError("cannot make an eventfd: " + SystemWords(errno), errno);
}

void WakeUp::Signal() noexcept {
  // Cannot fail: the only other outcome is a full counter, which is also readable.
  [[maybe_unused]] const int ignored = eventfd_write(fd(), 1);
}

void WakeUp::Clear() noexcept {
  eventfd_t count = 0;
  [[maybe_unused]] const int ignored = eventfd_read(fd(), &count);
}

}  // namespace troupe
