// What UcxEngine keeps of each operation and peer; for its own source files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "transport/ucx/engine.hpp"

namespace troupe {

struct UcxEngine::Receiving {
  Receiving(UcxEngine& engine, Reception taken)
      : reception(std::move(taken)),
        payload([this, &engine] { engine.Advance(*this); }),
        head([this, &engine] { engine.Advance(*this); }) {}
  bool open() const { return payload.open() || head.open(); }

  Reception reception;
  std::uint64_t tag = 0;  // of the payload: its place in Peer::receiving
  UcxRequest payload;
  UcxRequest head;
  MessageHeader header;
  bool inspected_head = false;
  Failure failure;
  Clock::time_point deadline;  // for UCX to let go, once there is a failure
  bool reported = false;       // a callback has been called
  bool retired = false;
};

struct UcxEngine::Sending {
  Sending(UcxEngine& engine, ProcessId receiver, Buffer bytes, std::function<void()> done)
      : to(receiver),
        buffer(std::move(bytes)),
        sent(std::move(done)),
        payload([this, &engine] { engine.AdvanceSend(*this); }),
        head([this, &engine] { engine.AdvanceSend(*this); }) {}
  bool open() const { return payload.open() || head.open(); }

  ProcessId to;
  Buffer buffer;
  std::function<void()> sent;
  MessageHeader header;
  UcxRequest payload;
  UcxRequest head;
  bool retired = false;
};

struct UcxEngine::Posting {
  Posting(UcxEngine& engine, const ControlMessage& what)
      : message(what), request([this, &engine] { engine.EndControl(*this); }) {}

  ControlMessage message;
  UcxRequest request;
};

struct UcxEngine::Peer {
  std::string name;
  std::optional<WireKey> key;  // of what it sends; from Connect() on
  std::unique_ptr<UcxEndpoint> endpoint;
  bool greeted = false;  // its hello is here
  bool settled = false;  // and our answer is out
  ReplayWindow window;
  std::unordered_map<std::uint64_t, std::unique_ptr<Receiving>> receiving;  // by tag
  Failure failure;                                                          // empty: it works
};

/// Of a peer whose endpoint or message has ended with `status`.
Failure ConnectionFailure(ucs_status_t status);

/// Under which UCX knows our active messages.
inline constexpr unsigned kControlId = 7;

}  // namespace troupe
