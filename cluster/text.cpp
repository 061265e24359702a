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
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
  return text;
}

}  // namespace troupe
