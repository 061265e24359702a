#include "data/rows/row_file.hpp"

#include <stdexcept>
#include <utility>
#include <zlib.h>

namespace troupe {
namespace {

std::uint32_t SumOf(const std::vector<std::uint8_t>& bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
}

std::shared_ptr<const RowStore> Opened(const RowOrigin& origin) {
  try {
    return FormatOfFile(origin.file).Open(origin.file);
  } catch (const std::runtime_error& error) {
    throw FaultError(origin.file, {FaultKind::kFile, 0, "", error.what()});
  }
}

}  // namespace

RowFile::RowFile(RowOrigin origin, std::shared_ptr<const RowIndex> index)
    : origin_(std::move(origin)),
      format_(FormatOfFile(origin_.file)),
      index_(std::move(index)),
      reader_(Opened(origin_)) {}

SharedBytes RowFile::BytesOf(const LlavaRow& row, const RowSpan& span) const {
  if (span.size > kMaxRowBytes) {
    throw FaultError(origin_.file,
                     row.Fault(FaultKind::kRow, "expected at most 1 GiB, got " +
                                                    std::to_string(span.size) + " bytes"));
  }
  try {
    return std::make_shared<const std::vector<std::uint8_t>>(reader_->Read(span));
  } catch (const std::runtime_error& error) {
    throw FaultError(origin_.file, row.Fault(FaultKind::kRow, error.what()));
  }
}

void RowFile::Parse(const SharedBytes& bytes, const std::vector<RowField>& fields,
                    LlavaRow& row) const {
  try {
    format_.Read(bytes, origin_, fields, row);
  } catch (const std::runtime_error& error) {
    throw FaultError(origin_.file, row.Fault(FaultKind::kRow, error.what()));
  }
}

RowFacts RowFile::FactsOf(std::int64_t row) const {
  try {
    return index_->Get(row);
  } catch (const IndexError& error) {
    throw FaultError(origin_.file,
                     {FaultKind::kRow, row, "",
                      std::string(error.what()) + "; `touch` the file to index it again"});
  }
}

LlavaRow RowFile::Read(std::int64_t row, const std::vector<RowField>& fields) const {
  const RowFacts facts = FactsOf(row);
  LlavaRow read{.index = row, .id = {}, .files = {}, .turns = {}, .line = facts.span.line};
  const SharedBytes bytes = BytesOf(read, facts.span);
  if (SumOf(*bytes) != facts.sum) {
    throw FaultError(
        origin_.file,
        read.Fault(FaultKind::kRow,
                   "its bytes are not those that were indexed: the file has changed in place; "
                   "restore it, or `touch` it to index it again"));
  }
  Parse(bytes, fields, read);
  return read;
}

LlavaRow RowFile::ReadFirst(std::int64_t row, const std::vector<RowField>& fields,
                            RowFacts& facts) const {
  LlavaRow read{.index = row, .id = {}, .files = {}, .turns = {}, .line = facts.span.line};
  const SharedBytes bytes = BytesOf(read, facts.span);
  facts.sum = SumOf(*bytes);
  Parse(bytes, fields, read);
  return read;
}

}  // namespace troupe
