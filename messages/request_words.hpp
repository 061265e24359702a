// What texts call a request: a message says it in a static member `kWords`.
#pragma once

#include <cstdint>

namespace troupe {

enum class RequestUnit : std::uint8_t { kNone = 0, kMicrobatch, kWindow, kRound };

struct RequestWords {
  const char* request = nullptr;  ///< "activation"; null: what its C++ type is called
  const char* answer = nullptr;   ///< "gradient"; null: "answer to ..."
  RequestUnit unit = RequestUnit::kNone;
};

}  // namespace troupe
