#include "transport/data_plane.hpp"

namespace troupe {

std::uint64_t StreamOf(const std::string& name) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char letter : name) {
    hash ^= static_cast<unsigned char>(letter);
    hash *= 1099511628211ULL;
  }
  return hash;
}

}  // namespace troupe
