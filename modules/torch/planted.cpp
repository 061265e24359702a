#include "modules/torch/planted.hpp"

namespace troupe {

static thread_local std::uint32_t faults = 0;

static std::uint32_t BitOf(LibraryFault fault) {
  return std::uint32_t{1} << static_cast<std::uint8_t>(fault);
}

PlantLibraryFault::PlantLibraryFault(LibraryFault fault) : before_(faults) {
  faults |= BitOf(fault);
}
PlantLibraryFault::~PlantLibraryFault() { faults = before_; }

bool HasLibraryFault(LibraryFault fault) { return (faults & BitOf(fault)) != 0; }

}  // namespace troupe
