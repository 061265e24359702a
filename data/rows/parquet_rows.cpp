// Rows of Parquet files, where Arrow's C++ library was found at build time.
#include "data/rows/row_format.hpp"

#ifdef TROUPE_HAS_ARROW

#include <algorithm>
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <arrow/util/byte_size.h>
#include <cstring>
#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <parquet/arrow/reader.h>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "files/text_file.hpp"

namespace troupe {
namespace {

using nlohmann::json;

/// A row group is the least that can be decoded. A row of it is read after a row of another one, so a few are
/// kept.
constexpr std::int64_t kMostGroupBytes = std::int64_t{512} << 20;
constexpr std::int64_t kMostCachedBytes = std::int64_t{512} << 20;
/// Of one file, while a row group is decoded: what its pages state may be wrong.
constexpr std::int64_t kMostDecoding = std::int64_t{2} << 30;
constexpr int kMostDepth = 16;

/// Returns the value, or throws the first line of the error.
template <class Value>
Value Get(arrow::Result<Value> result) {
  if (result.ok()) return std::move(result).ValueUnsafe();
  const std::string text = result.status().message();
  throw std::runtime_error(text.substr(0, text.find('\n')));
}
void Check(const arrow::Status& status) {
  if (!status.ok())
    throw std::runtime_error(status.message().substr(0, status.message().find('\n')));
}

/// The row's JSON, and the bytes that lie in its columns.
struct RowParts {
  json row = json::object();
  std::vector<std::pair<std::string, std::string_view>> members;
};

/// Converts the values of a row. Names the bytes of a column "COLUMN.0", "COLUMN.1".
class Converter {
 public:
  Converter(std::string column, RowParts& parts) : column_(std::move(column)), parts_(parts) {}

  /// Values that JSON has no type for are left out, as null is.
  json Value(const arrow::Array& array, std::int64_t i, int depth = 0) {
    using arrow::Type;
    if (depth > kMostDepth) throw std::runtime_error("column " + column_ + ": nested too deeply");
    if (array.IsNull(i)) return nullptr;
    switch (array.type_id()) {
      case Type::STRING:
        return std::string(static_cast<const arrow::StringArray&>(array).GetView(i));
      case Type::LARGE_STRING:
        return std::string(static_cast<const arrow::LargeStringArray&>(array).GetView(i));
      case Type::BINARY:
        return Member(static_cast<const arrow::BinaryArray&>(array).GetView(i));
      case Type::LARGE_BINARY:
        return Member(static_cast<const arrow::LargeBinaryArray&>(array).GetView(i));
      case Type::BOOL:
        return static_cast<const arrow::BooleanArray&>(array).Value(i);
      case Type::INT32:
        return static_cast<const arrow::Int32Array&>(array).Value(i);
      case Type::INT64:
        return static_cast<const arrow::Int64Array&>(array).Value(i);
      case Type::LIST:
        return List(static_cast<const arrow::ListArray&>(array), i, depth);
      case Type::LARGE_LIST:
        return List(static_cast<const arrow::LargeListArray&>(array), i, depth);
      case Type::STRUCT:
        return Object(static_cast<const arrow::StructArray&>(array), i, depth);
      case Type::DICTIONARY: {
        const auto& words = static_cast<const arrow::DictionaryArray&>(array);
        return Value(*words.dictionary(), words.GetValueIndex(i), depth + 1);
      }
      default:
        return nullptr;
    }
  }

 private:
  json Member(std::string_view bytes) {
    const std::string name = column_ + "." + std::to_string(num_members_++);
    parts_.members.emplace_back(name, bytes);
    return name;
  }
  template <class Lists>
  json List(const Lists& lists, std::int64_t i, int depth) {
    json list = json::array();
    for (std::int64_t at = lists.value_offset(i); at < lists.value_offset(i + 1); ++at) {
      list.push_back(Value(*lists.values(), at, depth + 1));
    }
    return list;
  }
  /// A struct {bytes, path} is a file; its path is where its author had it.
  json Object(const arrow::StructArray& all, std::int64_t i, int depth) {
    const auto& type = static_cast<const arrow::StructType&>(*all.type());
    const int bytes = type.GetFieldIndex("bytes");
    if (bytes >= 0 && type.GetFieldIndex("path") >= 0) {
      const json name = Value(*all.field(bytes), i, depth + 1);
      if (!name.is_null()) return name;
      throw std::runtime_error("column " + column_ +
                               ": expected the bytes of a file, got only its path");
    }
    json object = json::object();
    for (int field = 0; field < type.num_fields(); ++field) {
      json value = Value(*all.field(field), i, depth + 1);
      if (!value.is_null()) object[type.field(field)->name()] = std::move(value);
    }
    return object;
  }

  std::string column_;
  RowParts& parts_;
  int num_members_ = 0;
};

// The bytes of a row: its JSON, then each member as name and bytes; a length of 8 bytes before each.

void Put(std::string_view text, std::vector<std::uint8_t>& bytes) {
  const std::uint64_t size = text.size();
  const auto* const digits = reinterpret_cast<const std::uint8_t*>(&size);
  bytes.insert(bytes.end(), digits, digits + sizeof size);
  bytes.insert(bytes.end(), text.begin(), text.end());
}

class PartReader {
 public:
  explicit PartReader(std::span<const std::uint8_t> rest) : rest_(rest) {}
  std::span<const std::uint8_t> Next() {
    std::uint64_t size = 0;
    if (rest_.size() < sizeof size) throw std::runtime_error("a row is cut short");
    std::memcpy(&size, rest_.data(), sizeof size);
    rest_ = rest_.subspan(sizeof size);
    if (size > rest_.size()) throw std::runtime_error("a row is cut short");
    const auto part = rest_.first(size);
    rest_ = rest_.subspan(size);
    return part;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::uint8_t> rest_;
};

/// Row groups that were read last, of all files of this process.
class GroupCache {
 public:
  using Key = std::pair<const void*, int>;  ///< the reader and the group
  using Group = std::shared_ptr<const arrow::Table>;

  Group Find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(groups_, key, &Entry::key);
    if (found == groups_.end()) return nullptr;
    groups_.splice(groups_.begin(), groups_, found);
    return found->group;
  }
  void Add(const Key& key, const Group& group) {
    const std::lock_guard lock(mutex_);
    groups_.push_front({key, group, arrow::util::TotalBufferSize(*group)});
    bytes_ += groups_.front().bytes;
    while (bytes_ > kMostCachedBytes && groups_.size() > 1) Drop(std::prev(groups_.end()));
  }
  void DropOf(const void* reader) {
    const std::lock_guard lock(mutex_);
    for (auto entry = groups_.begin(); entry != groups_.end();) {
      const auto next = std::next(entry);
      if (entry->key.first == reader) Drop(entry);
      entry = next;
    }
  }

 private:
  struct Entry {
    Key key;
    Group group;
    std::int64_t bytes = 0;
  };
  void Drop(std::list<Entry>::iterator entry) {
    bytes_ -= entry->bytes;
    groups_.erase(entry);
  }

  std::mutex mutex_;
  std::list<Entry> groups_;  ///< the latest first
  std::int64_t bytes_ = 0;
};

GroupCache& TheGroups() {
  static GroupCache groups;
  return groups;
}

class ParquetReader final : public RowStore {
 public:
  explicit ParquetReader(const std::string& path)
      : pool_(arrow::default_memory_pool(), kMostDecoding) {
    parquet::ReaderProperties properties(&pool_);
    properties.set_page_checksum_verification(true);
    parquet::arrow::FileReaderBuilder builder;
    try {
      Check(builder.Open(Get(arrow::io::ReadableFile::Open(path, &pool_)), properties));
      builder.memory_pool(&pool_);
      reader_ = Get(builder.Build());
      const auto metadata = reader_->parquet_reader()->metadata();
      for (int group = 0; group < metadata->num_row_groups(); ++group) {
        const auto stated = metadata->RowGroup(group);
        sizes_.push_back(stated->total_byte_size());
        // A wrong number must not fill the disk with an index.
        const auto most = static_cast<std::int64_t>(std::filesystem::file_size(path));
        if (stated->num_rows() < 0 || stated->num_rows() > most - num_rows()) {
          throw std::runtime_error("it states more rows than it has bytes");
        }
        ends_.push_back(num_rows() + stated->num_rows());
      }
    } catch (const std::exception& error) {
      const std::string text = error.what();
      throw std::runtime_error("not a usable Parquet file: " + text.substr(0, text.find('\n')));
    }
  }
  ~ParquetReader() override { TheGroups().DropOf(this); }

  std::int64_t num_rows() const { return ends_.empty() ? 0 : ends_.back(); }

  std::vector<std::uint8_t> Read(const RowSpan& span) const override {
    const auto end = std::ranges::upper_bound(ends_, span.offset);
    if (span.offset < 0 || end == ends_.end()) throw std::runtime_error("the file has fewer rows");
    const auto number = static_cast<int>(end - ends_.begin());
    const GroupCache::Group group = GroupOf(number);
    const std::int64_t row = span.offset - (number == 0 ? 0 : ends_[std::size_t(number) - 1]);
    RowParts parts;
    for (int column = 0; column < group->num_columns(); ++column) {
      const std::string& name = group->field(column)->name();
      std::int64_t at = row;
      for (const auto& chunk : group->column(column)->chunks()) {
        if (at < chunk->length()) {
          json value = Converter(name, parts).Value(*chunk, at);
          if (!value.is_null()) parts.row[name] = std::move(value);
          break;
        }
        at -= chunk->length();
      }
    }
    std::vector<std::uint8_t> bytes;
    Put(parts.row.dump(-1, ' ', false, json::error_handler_t::replace), bytes);
    for (const auto& [name, member] : parts.members) {
      Put(name, bytes);
      Put(member, bytes);
      if (std::ssize(bytes) > kMaxRowBytes) throw std::runtime_error("expected at most 1 GiB");
    }
    return bytes;
  }

 private:
  GroupCache::Group GroupOf(int number) const {
    const GroupCache::Key key{this, number};
    if (auto group = TheGroups().Find(key)) return group;
    const std::lock_guard lock(mutex_);
    if (auto group = TheGroups().Find(key)) return group;
    if (const auto failed = failed_.find(number); failed != failed_.end()) {
      throw std::runtime_error(failed->second);
    }
    try {
      const auto bytes = sizes_[static_cast<std::size_t>(number)];
      if (bytes > kMostGroupBytes) {
        throw std::runtime_error("expected at most 512 MiB, got " + std::to_string(bytes) +
                                 " bytes: write the file with smaller row groups");
      }
      const GroupCache::Group group = Get(reader_->ReadRowGroup(number));
      TheGroups().Add(key, group);
      return group;
    } catch (const std::exception& error) {
      const std::string text = error.what();
      const std::string reason =
          "row group " + std::to_string(number) + ": " + text.substr(0, text.find('\n'));
      throw std::runtime_error(failed_[number] = reason);
    }
  }

  mutable arrow::CappedMemoryPool pool_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::vector<std::int64_t> ends_;             ///< rows up to and including each group
  std::vector<std::int64_t> sizes_;            ///< bytes of each group, as stated
  mutable std::mutex mutex_;                   ///< of reader_ and failed_
  mutable std::map<int, std::string> failed_;  ///< why, by group: each row of it would fail so
};

class ParquetFormat final : public RowFormat {
 public:
  /// The offset of a row is its number.
  void ScanAfter(const std::string& path, const std::optional<RowSpan>& last,
                 const std::function<void(const RowSpan&)>& found) const override {
    if (const std::string reason = WhyNotOpened(path); !reason.empty()) {
      throw std::runtime_error(reason);
    }
    const ParquetReader reader(path);
    for (std::int64_t row = last ? last->offset + 1 : 0; row < reader.num_rows(); ++row) {
      found({row, 0, 0});
    }
  }
  std::unique_ptr<const RowStore> Open(const std::string& path) const override {
    return std::make_unique<const ParquetReader>(path);
  }
  void Read(const SharedBytes& bytes, const RowOrigin& origin, const std::vector<RowField>& fields,
            LlavaRow& row) const override {
    PartReader parts(*bytes);
    const auto text = parts.Next();
    RowMembers members;
    while (!parts.at_end()) {
      const auto name = parts.Next();
      const std::string key(name.begin(), name.end());
      members.emplace(key, ItemFile(origin.file + ": " + key, bytes, parts.Next()));
    }
    ReadRow(json::parse(text.begin(), text.end()), fields, row);
    for (const auto& files : row.files) {
      for (const std::string& file : files) {
        if (!members.contains(file)) {
          throw std::runtime_error("expected bytes in its columns, got " + JsonText(file));
        }
      }
    }
    row.members = std::make_shared<const RowMembers>(std::move(members));
  }
  bool holds_items() const override { return true; }
};

}  // namespace

const RowFormat& ParquetTable() {
  static const ParquetFormat format;
  return format;
}

}  // namespace troupe

#else

#include <stdexcept>

namespace troupe {
namespace {

class NoParquet final : public RowFormat {
 public:
  void ScanAfter(const std::string&, const std::optional<RowSpan>&,
                 const std::function<void(const RowSpan&)>&) const override {
    throw std::runtime_error(
        "this build reads no Parquet files: build it with -DTROUPE_ARROW=DIR, the folder of "
        "Arrow's C++ library (docs/data.md)");
  }
  void Read(const SharedBytes&, const RowOrigin&, const std::vector<RowField>&,
            LlavaRow&) const override {
    throw std::logic_error("no row of a Parquet file was found");
  }
};

}  // namespace

const RowFormat& ParquetTable() {
  static const NoParquet format;
  return format;
}

}  // namespace troupe

#endif
