#include "checkpoint/stored_zip.hpp"

#include <cstring>

#include "files/strict_json.hpp"

namespace troupe {
namespace {

// Records, fields and offsets are those of PKWARE's APPNOTE.TXT.

/// A directory of a million tensors is not larger.
constexpr std::uint64_t kMaxDirectoryBytes = std::uint64_t{64} << 20U;
/// Instead of a number that only ZIP64 has room for.
constexpr std::uint32_t kInZip64 = 0xffffffff;

/// A little-endian number; `bytes` has room for it.
template <class Number>
Number NumberAt(std::string_view bytes, std::size_t offset) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

std::string_view Part(std::string_view bytes, std::uint64_t begin, std::uint64_t count,
                      const std::string& what) {
  if (begin > bytes.size() || count > bytes.size() - begin) {
    FailReading("the zip file is damaged: " + what + " is beyond its end");
  }
  return bytes.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
}

/// The fixed part of a record, which begins with `signature`.
std::string_view Record(std::string_view bytes, std::uint64_t begin, std::uint64_t count,
                        std::string_view signature, const std::string& what) {
  const std::string_view record = Part(bytes, begin, count, what);
  if (record.starts_with(signature)) return record;
  FailReading("the zip file is damaged: " + what + " is not where it should be");
}

struct Directory {
  std::uint64_t num_entries = 0;
  std::uint64_t num_bytes = 0;
  std::uint64_t begin = 0;
};

Directory FindDirectory(std::string_view file) {
  constexpr std::size_t kEndBytes = 22;
  constexpr std::size_t kLocatorBytes = 20;
  const std::size_t end = file.size() < kEndBytes ? file.size() : file.size() - kEndBytes;
  const std::string_view last = file.substr(end);
  if (!last.starts_with("PK\5\6")) {
    FailReading("expected a zip file of torch.save, found another file or a part of one");
  }
  const std::string_view locator = file.substr(end < kLocatorBytes ? 0 : end - kLocatorBytes);
  if (!locator.starts_with("PK\6\7")) {
    return {NumberAt<std::uint16_t>(last, 10), NumberAt<std::uint32_t>(last, 12),
            NumberAt<std::uint32_t>(last, 16)};
  }
  const std::string_view record =
      Record(file, NumberAt<std::uint64_t>(locator, 8), 56, "PK\6\6", "its last ZIP64 record");
  return {NumberAt<std::uint64_t>(record, 32), NumberAt<std::uint64_t>(record, 40),
          NumberAt<std::uint64_t>(record, 48)};
}

/// The numbers of an entry that are in its ZIP64 field, one after the other.
std::string_view Zip64Field(std::string_view extra, const std::string& title) {
  constexpr std::size_t kHeadBytes = 4;
  while (extra.size() >= kHeadBytes) {
    const auto id = NumberAt<std::uint16_t>(extra, 0);
    const auto field = Part(extra, kHeadBytes, NumberAt<std::uint16_t>(extra, 2), title);
    if (id == 1) return field;
    extra.remove_prefix(kHeadBytes + field.size());
  }
  return {};
}

/// `head` is the fixed part of the entry's record in the directory, `extra` its extra fields.
ZipEntry EntryPlace(std::string_view file, std::string_view head, std::string_view extra,
                    const std::string& title) {
  if ((NumberAt<std::uint16_t>(head, 8) & 1U) != 0) FailReading(title + " is encrypted");
  if (NumberAt<std::uint16_t>(head, 10) != 0) {
    FailReading(title + " is compressed: save it with torch.save, which compresses nothing");
  }
  std::uint64_t stored = NumberAt<std::uint32_t>(head, 20);
  std::uint64_t size = NumberAt<std::uint32_t>(head, 24);
  std::uint64_t local = NumberAt<std::uint32_t>(head, 42);
  std::string_view wide = Zip64Field(extra, title);
  for (std::uint64_t* const number : {&size, &stored, &local}) {
    if (*number != kInZip64) continue;
    *number = NumberAt<std::uint64_t>(Part(wide, 0, sizeof(*number), title), 0);
    wide.remove_prefix(sizeof(*number));
  }
  const std::string_view header = Record(file, local, 30, "PK\3\4", title);
  const std::uint64_t begin = local + header.size() + NumberAt<std::uint16_t>(header, 26) +
                              NumberAt<std::uint16_t>(header, 28);
  if (stored != size) FailReading("the zip file is damaged: " + title + " has two sizes");
  Part(file, begin, size, title);
  return {begin, begin + size};
}

}  // namespace

std::map<std::string, ZipEntry> ReadStoredZip(std::string_view file) {
  constexpr std::size_t kHeadBytes = 46;
  const Directory directory = FindDirectory(file);
  if (directory.num_bytes > kMaxDirectoryBytes) {
    FailReading("the zip file has a directory of " + std::to_string(directory.num_bytes) +
                " bytes, expected at most " + std::to_string(kMaxDirectoryBytes));
  }
  const std::string what = "its directory";
  std::string_view rest = Part(file, directory.begin, directory.num_bytes, what);
  std::map<std::string, ZipEntry> entries;
  for (std::uint64_t i = 0; i < directory.num_entries; ++i) {
    const std::string_view head = Record(rest, 0, kHeadBytes, "PK\1\2", what);
    const std::size_t name_bytes = NumberAt<std::uint16_t>(head, 28);
    const std::size_t extra_bytes = NumberAt<std::uint16_t>(head, 30);
    const std::size_t comment_bytes = NumberAt<std::uint16_t>(head, 32);
    const std::string name(Part(rest, kHeadBytes, name_bytes, what));
    const std::string_view extra = Part(rest, kHeadBytes + name_bytes, extra_bytes, what);
    const std::string title = "entry " + QuoteText(name);
    if (!entries.emplace(name, EntryPlace(file, head, extra, title)).second) {
      FailReading(title + " is there twice");
    }
    rest = rest.substr(
        Part(rest, 0, kHeadBytes + name_bytes + extra_bytes + comment_bytes, what).size());
  }
  return entries;
}

}  // namespace troupe
