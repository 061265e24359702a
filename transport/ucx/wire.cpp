#include "transport/ucx/wire.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe {

std::vector<std::byte> Pack(const PlaneAddress& address) {
  std::vector<std::byte> bytes(address.salt.begin(), address.salt.end());
  bytes.insert(bytes.end(), address.worker.begin(), address.worker.end());
  return bytes;
}

PlaneAddress Unpack(const std::vector<std::byte>& bytes, const std::string& name) {
  PlaneAddress address;
  if (bytes.size() <= address.salt.size()) {
    throw std::invalid_argument(name + ": expected the address of a data plane, got " +
                                std::to_string(bytes.size()) + " bytes");
  }
  const auto middle = bytes.begin() + static_cast<std::ptrdiff_t>(address.salt.size());
  std::copy(bytes.begin(), middle, address.salt.begin());
  address.worker.assign(middle, bytes.end());
  return address;
}

bool ReplayWindow::Accept(std::uint64_t counter) {
  if (counter > newest_) {
    const std::uint64_t ahead = counter - newest_;
    seen_ = ahead < 64 ? (seen_ << ahead) | 1 : 1;
    newest_ = counter;
    return true;
  }
  const std::uint64_t behind = newest_ - counter;
  if (counter == 0 || behind >= 64 || (seen_ >> behind & 1) != 0) return false;
  seen_ |= std::uint64_t{1} << behind;
  return true;
}

}  // namespace troupe
