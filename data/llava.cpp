#include "data/llava.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "files/text_file.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

using nlohmann::json;

/// A row is {"conversations": [{"from": ...}]}. A much deeper file is not a data set.
constexpr int kMaxDepth = 16;

constexpr const char* kTooDeep = "nested too deeply";

/// Returns the parser's error text without the library's tag.
std::string ParserText(const json::exception& error) {
  const std::string text = error.what();
  const std::size_t tag_end = text.find("] ");
  return tag_end == std::string::npos ? text : text.substr(tag_end + 2);
}

class SetReader {
 public:
  SetReader(const std::string& file, const std::vector<RowField>& fields) : fields_(fields) {
    set_.file = file;
  }

  /// Takes rows out while the file is parsed, so only one row is held as JSON at a time.
  LlavaSet ReadList(std::istream& stream) && {
    const auto take_row = [this](int depth, json::parse_event_t event, json& value) {
      if (depth > kMaxDepth) throw std::runtime_error(kTooDeep);
      if (depth == 0 && event != json::parse_event_t::array_start &&
          event != json::parse_event_t::array_end) {
        throw std::runtime_error(
            "expected a list of rows, got something else; a file with one row a line is named "
            "*.jsonl");
      }
      const bool ends = event == json::parse_event_t::object_end ||
                        event == json::parse_event_t::array_end ||
                        event == json::parse_event_t::value;
      if (depth != 1 || !ends) return true;
      AddRow(value);
      return false;
    };
    try {
      [[maybe_unused]] const json emptied_list = json::parse(stream, take_row);
    } catch (const json::exception& error) {
      AddFault(FaultKind::kFile, "", ParserText(error));
    } catch (const std::runtime_error& error) {
      AddFault(FaultKind::kFile, "", error.what());
    }
    return std::move(set_);
  }

  LlavaSet ReadLines(std::istream& stream) && {
    const auto limit = [](int depth, json::parse_event_t /*event*/, json& /*value*/) {
      if (depth > kMaxDepth) throw std::runtime_error(kTooDeep);
      return true;
    };
    for (std::string line; std::getline(stream, line);) {
      ++line_;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      try {
        AddRow(json::parse(line, limit));
      } catch (const json::parse_error& error) {
        AddUnusable("not valid JSON at byte " + std::to_string(error.byte) + " of its line");
      } catch (const json::exception& error) {  // a number that is too large
        AddUnusable(ParserText(error));
      } catch (const std::runtime_error& error) {
        AddUnusable(error.what());
      }
    }
    return std::move(set_);
  }

 private:
  void AddRow(const json& value) {
    LlavaRow row;
    row.index = std::ssize(set_.rows);
    row.line = line_;
    try {
      ReadRow(value, fields_, row);
      set_.rows.push_back(std::move(row));
    } catch (const std::runtime_error& error) {
      AddUnusable(error.what(), row.id);
    }
  }

  void AddUnusable(const std::string& reason, const std::string& id = "") {
    AddFault(FaultKind::kRow, id, reason);
    set_.rows.push_back({std::ssize(set_.rows), id, {}, {}, false, line_});
    set_.rows.back().files.resize(fields_.size());
  }

  void AddFault(FaultKind kind, const std::string& id, const std::string& reason) {
    set_.faults.push_back({kind, std::ssize(set_.rows), id, reason, line_});
  }

  const std::vector<RowField>& fields_;
  LlavaSet set_;
  std::int64_t line_ = 0;  ///< line being read; 0 in a list
};

}  // namespace

std::string FaultLine(const std::string& file, const DataFault& fault) {
  if (fault.kind == FaultKind::kFile) return file + ": " + fault.reason;
  return file + (fault.line > 0 ? ":" + std::to_string(fault.line) : "") + ": row " +
         std::to_string(fault.row) + (fault.id.empty() ? "" : " (id " + JsonText(fault.id) + ")") +
         ": " + Printable(fault.reason);
}

std::string LlavaSet::PathOf(const std::string& name) const {
  const std::filesystem::path base =
      folder.empty() ? std::filesystem::path(file).parent_path() : std::filesystem::path(folder);
  return (base / name).string();
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

LlavaSet ReadLlava(const std::string& file, const std::vector<RowField>& fields) {
  const auto refuse = [&](const std::string& reason) {
    throw FaultError(file, {FaultKind::kFile, 0, "", reason});
  };
  if (const std::string reason = WhyNotOpened(file); !reason.empty()) refuse(reason);
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(std::string("cannot be read: ") + std::strerror(errno));
  SetReader reader(file, fields);
  const bool lines = std::filesystem::path(file).extension() == ".jsonl";
  return lines ? std::move(reader).ReadLines(stream) : std::move(reader).ReadList(stream);
}

}  // namespace troupe
