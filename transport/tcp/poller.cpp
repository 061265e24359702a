#include "transport/tcp/poller.hpp"

#include <array>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <system_error>

namespace troupe {
namespace {

constexpr int kWakeUpTag = -1;

[[noreturn]] void Throw(const char* call) {
  throw std::runtime_error(std::string(call) + ": " + std::generic_category().message(errno));
}

}  // namespace

Poller::Poller()
    : set_(::epoll_create1(EPOLL_CLOEXEC)), wake_up_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!set_) Throw("epoll_create1");
  if (!wake_up_) Throw("eventfd");
  Add(wake_up_.get(), kWakeUpTag);
}

void Poller::Control(int operation, int descriptor, int tag, bool writes) {
  epoll_event event{};
  event.events = writes ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.fd = tag;
  if (::epoll_ctl(set_.get(), operation, descriptor, &event) != 0) Throw("epoll_ctl");
}

void Poller::Add(int descriptor, int tag) { Control(EPOLL_CTL_ADD, descriptor, tag, false); }

void Poller::Watch(int descriptor, int tag, bool writes) {
  Control(EPOLL_CTL_MOD, descriptor, tag, writes);
}

void Poller::Remove(int descriptor) { ::epoll_ctl(set_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

bool Poller::Progress() {
  const bool flushed = hooks_.flush();
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(set_.get(), events.data(), static_cast<int>(events.size()), 0);
  if (count < 0 && errno != EINTR) Throw("epoll_wait");
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.fd == kWakeUpTag) {
      eventfd_t ignored = 0;
      static_cast<void>(::eventfd_read(wake_up_.get(), &ignored));
      continue;
    }
    // Errors and closed connections are found by reading.
    hooks_.ready(event.data.fd, (event.events & ~EPOLLOUT) != 0, (event.events & EPOLLOUT) != 0);
  }
  return flushed || count > 0;
}

// Cannot fail: the only other outcome is a full counter, which is also readable.
void Poller::Signal() { static_cast<void>(::eventfd_write(wake_up_.get(), 1)); }

}  // namespace troupe
