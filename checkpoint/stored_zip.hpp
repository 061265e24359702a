// The directory of a zip archive whose entries are stored, not compressed, so that they can be read
// in place. ZIP64 included: files of weights are larger than 4 GiB.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace troupe {

/// Where the bytes of an entry are in the file.
struct ZipEntry {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Returns the entries of `file`, the content of an archive without a comment, by name. They are
/// within it. Throws std::runtime_error, one line: not a zip file, damaged, an entry that is
/// compressed, encrypted or there twice.
std::map<std::string, ZipEntry> ReadStoredZip(std::string_view file);

}  // namespace troupe
