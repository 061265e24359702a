#include "cluster/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <system_error>

namespace troupe {

std::string SystemWords(int error_number) {
  std::string words = std::generic_category().message(error_number);
  // Lowercases the first letter: "Is a directory", but not "RPC ...".
  if (words.size() > 1 && std::islower(static_cast<unsigned char>(words[1])) != 0)
    words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
  return words;
}

std::string Enumerate(const std::vector<std::string>& names) {
  constexpr std::ptrdiff_t kMost = 8;
  const std::ptrdiff_t left_out = std::max(std::ssize(names) - kMost, std::ptrdiff_t{0});
  const std::string text = Listed({names.begin(), names.end() - left_out});
  return left_out == 0 ? text : text + " and " + std::to_string(left_out) + " more";
}

}  // namespace troupe
