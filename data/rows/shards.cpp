#include "data/rows/shards.hpp"

#include <cerrno>
#include <cstring>
#include <glob.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <sys/stat.h>

#include "data/rows/llava_row.hpp"
#include "files/text_file.hpp"

namespace troupe {
namespace {

constexpr std::size_t kMostPaths = 1'000'000;

void RequireFew(std::size_t count) {
  if (count > kMostPaths) throw std::runtime_error("expected at most 1000000 files, got more");
}

/// Returns the numbers of "000..999", with as many digits; none if `text` is not a range.
std::vector<std::string> RangeOf(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return {};
  const std::string first = text.substr(0, dots);
  const std::string last = text.substr(dots + 2);
  constexpr std::size_t kMostDigits = 18;
  const auto is_number = [](const std::string& digits) {
    return !digits.empty() && digits.size() <= kMostDigits &&
           digits.find_first_not_of("0123456789") == std::string::npos;
  };
  if (!is_number(first) || !is_number(last)) return {};
  const std::int64_t begin = std::stoll(first);
  const std::int64_t end = std::stoll(last);
  if (end < begin) throw std::runtime_error("{" + text + "}: expected an ascending range");
  RequireFew(static_cast<std::size_t>(end - begin) + 1);
  std::vector<std::string> numbers;
  for (std::int64_t i = begin; i <= end; ++i) {
    std::string number = std::to_string(i);
    if (number.size() < first.size()) number.insert(0, first.size() - number.size(), '0');
    numbers.push_back(std::move(number));
  }
  return numbers;
}

std::vector<std::string> ChoicesOf(const std::string& text) {
  std::vector<std::string> choices = RangeOf(text);
  if (!choices.empty()) return choices;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    choices.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return choices;
}

std::vector<std::string> ExpandBraces(const std::string& pattern) {
  const std::size_t open = pattern.find('{');
  if (open == std::string::npos) return {pattern};
  const std::size_t close = pattern.find('}', open);
  if (close == std::string::npos || pattern.find('{', open + 1) < close) {
    throw std::runtime_error("expected { and } in pairs, none within another");
  }
  const std::vector<std::string> rests = ExpandBraces(pattern.substr(close + 1));
  std::vector<std::string> paths;
  for (const std::string& choice : ChoicesOf(pattern.substr(open + 1, close - open - 1))) {
    RequireFew(paths.size() + rests.size());
    for (const std::string& rest : rests) paths.push_back(pattern.substr(0, open) + choice + rest);
  }
  return paths;
}

struct FreeGlob {
  void operator()(glob_t* found) const { globfree(found); }
};

void AddMatches(const std::string& pattern, std::vector<std::string>& paths) {
  glob_t storage = {};
  const int result = glob(pattern.c_str(), 0, nullptr, &storage);
  const std::unique_ptr<glob_t, FreeGlob> found(&storage);
  if (result == GLOB_NOMATCH) throw std::runtime_error("no file matches " + JsonText(pattern));
  if (result != 0) throw std::runtime_error("the files cannot be listed");
  RequireFew(paths.size() + found->gl_pathc);
  for (std::size_t i = 0; i < found->gl_pathc; ++i) paths.emplace_back(found->gl_pathv[i]);
}

}  // namespace

std::vector<std::string> ExpandPaths(const std::string& pattern) {
  std::vector<std::string> paths;
  for (const std::string& path : ExpandBraces(pattern)) {
    const bool is_pattern = path.find_first_of("*?[") != std::string::npos;
    if (is_pattern && !WhyNotOpened(path).empty()) {
      AddMatches(path, paths);
    } else {
      paths.push_back(path);
    }
  }
  return paths;
}

Shard LookAt(const std::string& path) {
  if (const std::string reason = WhyNotOpened(path); !reason.empty()) {
    throw std::runtime_error(reason);
  }
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) {
    throw std::runtime_error(std::string("cannot be read: ") + std::strerror(errno));
  }
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  return {path, status.st_size, status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec,
          status.st_ino};
}

}  // namespace troupe
