#include <algorithm>
#include <archive.h>
#include <archive_entry.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "data/rows/row_format.hpp"
#include "files/byte_source.hpp"
#include "files/strict_json.hpp"
#include "files/text_file.hpp"

namespace troupe {
namespace {

using nlohmann::json;

constexpr int kMaxMemberDepth = 16;
/// A member larger than any image that can be used.
constexpr std::int64_t kMaxMemberBytes = std::int64_t{256} << 20;
constexpr std::size_t kMaxMembers = 10'000;  // of a row

struct FreeArchive {
  void operator()(archive* open) const { archive_read_free(open); }
};
using Archive = std::unique_ptr<archive, FreeArchive>;

[[noreturn]] void Fail(archive* open, const std::string& what) {
  const char* const text = archive_error_string(open);
  throw std::runtime_error(what + (text == nullptr ? "" : std::string(": ") + text));
}

/// Returns a reader of plain tar archives: other formats and compression are not enabled.
Archive NewArchive() {
  Archive open(archive_read_new());
  if (open == nullptr) throw std::bad_alloc();
  archive_read_support_format_tar(open.get());
  return open;
}

/// A member's name as WebDataset splits it.
struct MemberName {
  std::string_view key;     ///< up to the first dot after the last slash
  std::string_view ending;  ///< after that dot; may have dots
};

MemberName Split(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t dot = path.find('.', slash == std::string_view::npos ? 0 : slash);
  if (dot == std::string_view::npos) return {path, {}};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

/// Goes to the next member that is a file. Returns null at the end.
archive_entry* NextFile(archive* open) {
  for (;;) {
    archive_entry* entry = nullptr;
    const int result = archive_read_next_header(open, &entry);
    if (result == ARCHIVE_EOF) return nullptr;
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) Fail(open, "not a usable tar archive");
    if (archive_entry_filetype(entry) != AE_IFDIR) return entry;
  }
}

std::string PathOf(archive_entry* entry) {
  const char* const path = archive_entry_pathname(entry);
  return path == nullptr ? "" : path;
}

/// The part of an ending that names the type of a file: "png" of "image.0.png".
std::string_view LastOf(std::string_view ending) {
  const std::size_t dot = ending.rfind('.');
  return dot == std::string_view::npos ? ending : ending.substr(dot + 1);
}

/// Reads a row from the bytes of its members.
class MembersReader {
 public:
  /// Sets `id` to the row's key as soon as it is known.
  MembersReader(SharedBytes bytes, const RowOrigin& origin, std::string& id)
      : bytes_(std::move(bytes)) {
    const Archive open = NewArchive();
    if (archive_read_open_memory(open.get(), bytes_->data(), bytes_->size()) != ARCHIVE_OK) {
      Fail(open.get(), "not a usable tar archive");
    }
    while (archive_entry* const entry = NextFile(open.get())) {
      const std::string path = PathOf(entry);
      if (!key_.empty() && Split(path).key != key_) break;  // the next row
      id = key_ = Split(path).key;
      Add(open.get(), entry, origin);
    }
  }

  /// The row's JSON, with its files named as members. Throws std::runtime_error.
  json Row(const std::vector<RowField>& fields) const {
    json row = json::object();
    if (const auto found = texts_.find("json"); found != texts_.end()) {
      row = ParseStrictJson(found->second, "json", kMaxMemberDepth);
      if (!row.is_object()) throw std::runtime_error("json: expected an object");
    } else if (const auto text = texts_.find("txt"); text != texts_.end()) {
      row["caption"] = text->second;
    } else {
      throw std::runtime_error(
          "expected a member *.json or *.txt, found none; the members of a row are neighbours");
    }
    if (!row.contains("id")) row["id"] = key_;
    for (const RowField& field : fields) NameFiles(field, fields.size() == 1, row);
    return row;
  }

  /// Returns the ending of a member that the row names by its path, its base name or its ending.
  std::string EndingOf(const std::string& name) const {
    if (members_.contains(name)) return name;
    const auto [key, ending] = Split(name);
    const std::string_view base = std::string_view(key_).substr(key_.rfind('/') + 1);
    if (members_.contains(ending) && (key == key_ || key == base)) return std::string(ending);
    throw std::runtime_error("expected members of its row, got " + JsonText(name));
  }

  RowMembers&& members() && { return std::move(members_); }

 private:
  void Add(archive* open, archive_entry* entry, const RowOrigin& origin) {
    const std::string path = PathOf(entry);
    const auto refuse = [&](const std::string& why) {
      throw std::runtime_error("member " + JsonText(path) + ": " + why);
    };
    const std::filesystem::path parts(path);
    if (parts.is_absolute() || std::ranges::find(parts, "..") != parts.end()) {
      refuse("expected a relative path without \"..\"");
    }
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) {
      refuse("expected a regular file");
    }
    if (archive_entry_sparse_count(entry) > 0) refuse("expected a file without holes");
    const std::int64_t size = archive_entry_size(entry);
    if (size < 0 || size > kMaxMemberBytes || size > std::ssize(*bytes_)) {
      refuse("expected at most 256 MiB within the archive, got " + std::to_string(size) + " bytes");
    }
    if (members_.size() + texts_.size() >= kMaxMembers) refuse("expected at most 10000 in a row");
    const std::string ending(Split(path).ending);
    const std::span<const std::uint8_t> own = DataOf(open, static_cast<std::size_t>(size));
    if (ending == "json" || ending == "txt") {
      const bool added = texts_.emplace(ending, std::string(own.begin(), own.end())).second;
      if (!added) refuse("appears twice in its row");
      return;
    }
    const bool added =
        members_.emplace(ending, ItemFile(origin.file + ": " + path, bytes_, own)).second;
    if (!added) refuse("appears twice in its row");
    order_.push_back(ending);
  }

  /// Returns the data of the current member: a part of the row's bytes.
  std::span<const std::uint8_t> DataOf(archive* open, std::size_t size) const {
    const void* block = nullptr;
    std::size_t length = 0;
    la_int64_t at = 0;
    if (size == 0) return {};
    if (archive_read_data_block(open, &block, &length, &at) != ARCHIVE_OK) {
      Fail(open, "a member is cut short");
    }
    const auto* const data = static_cast<const std::uint8_t*>(block);
    const bool inside = data >= bytes_->data() && at == 0 && length == size &&
                        data + size <= bytes_->data() + bytes_->size();
    if (!inside) throw std::runtime_error("a member is cut short");
    return {data, size};
  }

  /// Names the members of a field in a row that names none: those whose ending begins with the
  /// field's name and, if there is only one field, of images.
  void NameFiles(const RowField& field, bool only_field, json& row) const {
    const auto stated = row.find(field.field);
    if ((stated != row.end() && !stated->is_null()) || PartsNameFiles(row)) return;
    json names = json::array();
    for (const std::string& ending : order_) {
      const bool is_image = only_field && field.word == "image" && IsImage(LastOf(ending));
      if (is_image || ending.starts_with(field.field + ".")) names.push_back(ending);
    }
    if (!names.empty()) row[field.field] = std::move(names);
  }

  /// Whether a part of a message names its file.
  static bool PartsNameFiles(const json& row) {
    const auto messages = row.find("messages");
    if (messages == row.end() || !messages->is_array()) return false;
    const auto names = [](const json& part) {
      return part.is_object() &&
             (part.contains("image") || part.contains("image_url") || part.contains("path"));
    };
    return std::ranges::any_of(*messages, [&](const json& turn) {
      const auto parts = turn.is_object() ? turn.find("content") : turn.end();
      return turn.is_object() && parts != turn.end() && parts->is_array() &&
             std::ranges::any_of(*parts, names);
    });
  }

  static bool IsImage(std::string_view type) {
    constexpr std::string_view kTypes[] = {"jpg", "jpeg", "png", "webp", "gif"};
    return std::ranges::find(kTypes, type) != std::end(kTypes);
  }

  SharedBytes bytes_;
  std::string key_;
  std::map<std::string, std::string> texts_;  ///< by ending
  RowMembers members_;                        ///< by ending
  std::vector<std::string> order_;  ///< endings of `members_` as they stand in the archive
};

/// Zeros at the end of an archive.
constexpr std::int64_t kEndBytes = 1024;
constexpr const char* kCutShort = "expected zeros at the end of the archive: it may be cut short";
constexpr const char* kSecondArchive =
    "expected the end of the file after the end of the archive, got more";

/// Throws std::runtime_error with `failure` unless bytes [begin, end) of a file are zero.
void RequireZeros(const std::string& path, std::int64_t begin, std::int64_t end,
                  const char* failure) {
  const std::shared_ptr<const ByteSource> file = OpenFile(path);
  std::vector<char> bytes(std::size_t{1} << 16);
  for (; begin < end; begin += std::ssize(bytes)) {
    const auto count =
        static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(bytes), end - begin));
    file->Read(static_cast<std::uint64_t>(begin), bytes.data(), count);
    if (std::any_of(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count),
                    [](char byte) { return byte != 0; })) {
      throw std::runtime_error(failure);
    }
  }
}

class TarFormat final : public RowFormat {
 public:
  void ScanAfter(const std::string& path, const std::optional<RowSpan>& last,
                 const std::function<void(const RowSpan&)>& found) const override {
    if (const std::string reason = WhyNotOpened(path); !reason.empty()) {
      throw std::runtime_error(reason);
    }
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
    if (size == 0) throw std::runtime_error("an empty file");
    const std::int64_t begin = last ? last->offset : 0;  // the last row may end the archive
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                               std::fclose);
    if (file == nullptr || fseeko(file.get(), begin, SEEK_SET) != 0) {
      throw std::runtime_error(std::string("cannot be read: ") + std::strerror(errno));
    }
    const Archive open = NewArchive();
    if (archive_read_open_FILE(open.get(), file.get()) != ARCHIVE_OK) {
      Fail(open.get(), "not a usable tar archive; compressed ones must be unpacked first");
    }
    const auto found_after = SkipFirst(last.has_value(), found);
    RowSpan span;
    std::string key;
    bool any = false;
    while (archive_entry* const entry = NextFile(open.get())) {
      const std::int64_t at = begin + archive_read_header_position(open.get());
      const std::string member = PathOf(entry);
      if (any && Split(member).key == key) continue;
      if (any) found_after({span.offset, at - span.offset, 0});
      any = true;
      key = Split(member).key;
      span.offset = at;
    }
    if (std::ferror(file.get()) != 0) throw std::runtime_error("cannot be read to its end");
    const std::int64_t end = begin + archive_filter_bytes(open.get(), 0);
    RequireZeros(path, std::max<std::int64_t>(0, size - kEndBytes), size, kCutShort);
    if (any) found_after({span.offset, std::min<std::int64_t>(size, end) - span.offset, 0});
    RequireZeros(path, end, size, kSecondArchive);
  }

  void Read(const SharedBytes& bytes, const RowOrigin& origin, const std::vector<RowField>& fields,
            LlavaRow& row) const override {
    MembersReader reader(bytes, origin, row.id);
    ReadRow(reader.Row(fields), fields, row);
    for (auto& files : row.files) {
      for (std::string& file : files) file = reader.EndingOf(file);
    }
    row.members = std::make_shared<const RowMembers>(std::move(reader).members());
  }
  bool holds_items() const override { return true; }
};

}  // namespace

const RowFormat& TarShard() {
  static const TarFormat format;
  return format;
}

}  // namespace troupe
