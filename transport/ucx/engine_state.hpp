// The state of UcxEngine's operations and peers; for its own source files.
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
  std::uint64_t tag = 0;  // of the payload; its key in Peer::receiving
  UcxRequest payload;
  UcxRequest head;
  MessageHeader header;
  bool inspected_head = false;
  Failure failure;
  Clock::time_point deadline;  // for UCX to release the memory after a failure
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
  Posting(UcxEngine& engine, const ControlMessage& given)
      : message(given), request([this, &engine] { engine.EndControl(*this); }) {}

  ControlMessage message;
  UcxRequest request;
};

struct UcxEngine::Peer {
  std::string name;
  std::optional<WireKey> key;  // of the peer's messages; set by Connect()
  std::unique_ptr<UcxEndpoint> endpoint;
  bool hello_received = false;
  bool settled = false;  // the answer to its hello is sent
  ReplayWindow window;
  std::unordered_map<std::uint64_t, std::unique_ptr<Receiving>> receiving;  // by tag
  Failure failure;                                                          // empty: the peer works
};

/// For a peer whose endpoint or message has ended with `status`.
Failure ConnectionFailure(ucs_status_t status);

/// The UCX id of our active messages.
inline constexpr unsigned kControlId = 7;

}  // namespace troupe
