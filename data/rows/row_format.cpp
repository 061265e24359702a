#include "data/rows/row_format.hpp"

#include <filesystem>
#include <utility>

#include "files/byte_source.hpp"

namespace troupe {
namespace {

/// A row is a piece of the file.
class PieceReader final : public RowStore {
 public:
  explicit PieceReader(const std::string& path) : file_(OpenFile(path)) {}
  std::vector<std::uint8_t> Read(const RowSpan& span) const override {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(span.size));
    file_->Read(static_cast<std::uint64_t>(span.offset), bytes.data(), bytes.size());
    return bytes;
  }

 private:
  std::shared_ptr<const ByteSource> file_;
};

}  // namespace

std::unique_ptr<const RowStore> RowFormat::Open(const std::string& path) const {
  return std::make_unique<const PieceReader>(path);
}

std::function<void(const RowSpan&)> SkipFirst(bool skip,
                                              const std::function<void(const RowSpan&)>& found) {
  return [skip, &found](const RowSpan& span) mutable {
    if (!std::exchange(skip, false)) found(span);
  };
}

const RowFormat& FormatOfFile(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension();
  if (ending == ".jsonl") return JsonLines();
  if (ending == ".tar") return TarShard();
  if (ending == ".parquet") return ParquetTable();
  return JsonList();
}

}  // namespace troupe
