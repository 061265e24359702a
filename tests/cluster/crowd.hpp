// Many strangers at one address, who come back as soon as they are closed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <poll.h>
#include <thread>
#include <vector>

#include "cluster/poll_set.hpp"
#include "cluster/socket.hpp"

namespace troupe::testing {

class Crowd {
 public:
  /// `size` connections at all times; each is handed to `greet` once it is connected, which may
  /// write to it. Returns when all have been tried once.
  Crowd(const Address& address, std::size_t size, std::function<void(Socket&)> greet = {})
      : address_(Resolve(address).front()), greet_(std::move(greet)), members_(size) {
    for (Member& member : members_) Open(member);
    thread_ = std::thread([this] {
      while (!over_) Round();
    });
  }
  ~Crowd() {
    over_ = true;
    thread_.join();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  /// How often one of them was closed and came back.
  std::uint64_t num_returns() const { return num_returns_; }

 private:
  struct Member {
    Socket socket;
    bool greeted = false;
  };

  void Open(Member& member) {
    member = {};
    try {
      member.socket = Socket::StartConnect(address_);
    } catch (const SocketError&) {
      // Nothing listens: it tries again in the next round.
    }
  }

  void Round() {
    polls_.Clear();
    for (const Member& member : members_)
      if (member.socket) polls_.Add(member.socket.fd(), member.greeted ? POLLIN : POLLIN | POLLOUT);
    polls_.Wait(std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
    for (Member& member : members_) {
      if (!member.socket) {
        Open(member);
      } else if (polls_.Ready(member.socket.fd()) != 0 && !Serve(member)) {
        ++num_returns_;
        Open(member);
      }
    }
  }

  /// False once it is closed.
  bool Serve(Member& member) const {
    try {
      if (!member.greeted) {
        if (member.socket.ConnectResult() != 0) return false;
        if (greet_) greet_(member.socket);
        member.greeted = true;
      }
      std::array<std::byte, 256> ignored{};
      for (;;) {
        const auto n = member.socket.TryRead(ignored);
        if (!n) return true;
        if (*n == 0) return false;
      }
    } catch (const SocketError&) {
      return false;
    }
  }

  const ResolvedAddress address_;
  const std::function<void(Socket&)> greet_;
  std::vector<Member> members_;
  PollSet polls_;
  std::atomic<bool> over_{false};
  std::atomic<std::uint64_t> num_returns_{0};
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace troupe::testing
