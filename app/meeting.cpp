#include "app/meeting.hpp"

#include <unistd.h>

#include "cluster/run_key.hpp"
#include "cluster/socket.hpp"

namespace troupe {

Meeting::Meeting() : key_(RunKey::Generate().ToDescriptor()) {}

Meeting::~Meeting() { close(key_); }

std::string Meeting::FreeAddress() {
  return ToString(Socket::Listen({"127.0.0.1", 0}).local_address());
}

}  // namespace troupe
