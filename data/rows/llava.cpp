#include "data/rows/llava.hpp"

#include <filesystem>
#include <utility>

#include "layout/text.hpp"

namespace troupe {

std::string FaultLine(const std::string& file, const DataFault& fault) {
  if (fault.kind == FaultKind::kFile) return file + ": " + fault.reason;
  return RowName(file, fault) + ": " + Printable(fault.reason);
}

std::string RowName(const std::string& file, const DataFault& fault) {
  return file + (fault.line > 0 ? ":" + std::to_string(fault.line) : "") + ": row " +
         std::to_string(fault.row) + (fault.id.empty() ? "" : " (id " + JsonText(fault.id) + ")");
}

std::string RowOrigin::PathOf(const std::string& name) const {
  const std::filesystem::path base =
      folder.empty() ? std::filesystem::path(file).parent_path() : std::filesystem::path(folder);
  return (base / name).string();
}

ItemFile LlavaRow::ItemOf(const RowOrigin& origin, const std::string& name) const {
  return members == nullptr ? ItemFile(origin.PathOf(name)) : members->at(name);
}

std::vector<TextPiece> SplitAtPlaceholders(std::string_view text,
                                           const std::vector<RowField>& fields) {
  std::vector<TextPiece> pieces;
  while (!text.empty()) {
    std::size_t first = std::string_view::npos;
    int field = -1;
    std::size_t length = 0;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string& placeholder = fields[i].placeholder;
      const std::size_t at = placeholder.empty() ? text.npos : text.find(placeholder);
      if (at == text.npos || at > first || (at == first && placeholder.size() <= length)) continue;
      first = at;
      field = static_cast<int>(i);
      length = placeholder.size();
    }
    if (first != 0) pieces.push_back({text.substr(0, first), -1});
    if (field < 0) break;
    pieces.push_back({text.substr(first, length), field});
    text.remove_prefix(first + length);
  }
  return pieces;
}

}  // namespace troupe
