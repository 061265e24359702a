// The name of a request in texts: a static member `kWords` of the message.
#pragma once

#include <cstdint>

namespace troupe {

enum class RequestUnit : std::uint8_t { kNone = 0, kMicrobatch, kWindow, kRound };

struct RequestWords {
  const char* request = nullptr;  ///< "activation"; null: the name of its C++ type
  const char* answer = nullptr;   ///< "gradient"; null: "answer to ..."
  RequestUnit unit = RequestUnit::kNone;
};

}  // namespace troupe
