#include "schedule/action_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <stdexcept>

namespace troupe {
namespace {

struct Word {
  std::string_view text;
  ActionKind kind;
};
constexpr std::array<Word, 11> kWords = {{{"F", ActionKind::kForward},
                                          {"B", ActionKind::kBackward},
                                          {"I", ActionKind::kInput},
                                          {"W", ActionKind::kWeight},
                                          {"SEND_F", ActionKind::kSendForward},
                                          {"RECV_F", ActionKind::kReceiveForward},
                                          {"SEND_B", ActionKind::kSendBackward},
                                          {"RECV_B", ActionKind::kReceiveBackward},
                                          {"UNSHARD", ActionKind::kUnshard},
                                          {"RESHARD", ActionKind::kReshard},
                                          {"REDUCE_GRAD", ActionKind::kReduceGradients}}};
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kOverlap = "OVERLAP_F_B";

bool OfWholeStage(ActionKind kind) { return kind >= ActionKind::kUnshard; }

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\"";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// At most 40 characters of untrusted text, without control characters.
std::string Quoted(std::string_view text) {
  std::string shown(text.substr(0, 40));
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return "\"" + shown + (text.size() > 40 ? "...\"" : "\"");
}

/// Removes the number at the beginning of `text` and returns it.
std::optional<std::int64_t> TakeNumber(std::string_view& text, std::int64_t largest) {
  std::int64_t number = 0;
  const std::string_view digits = text.substr(0, text.find_first_not_of(kDigits));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc() || number > largest) return std::nullopt;
  text.remove_prefix(digits.size());
  return number;
}

[[noreturn]] void Refuse(const std::string& expected, std::string_view got) {
  throw std::invalid_argument("expected " + expected + ", got " + Quoted(got));
}

Action ParseAction(std::string_view text, int column) {
  std::string_view rest = Trimmed(text);
  const auto stage = TakeNumber(rest, kMaxStage);
  if (!stage) Refuse("a stage below " + std::to_string(kMaxStage + 1) + " first, as in 0F3", text);
  const std::string_view word = rest.substr(0, rest.find_first_of(kDigits));
  rest.remove_prefix(word.size());
  const auto found = std::ranges::find(kWords, word, &Word::text);
  if (found == kWords.end()) Refuse("F, B, I, W, SEND_F, ... after the stage, as in 0F3", text);
  Action action{found->kind, static_cast<int>(*stage), -1, column};
  if (OfWholeStage(action.kind)) {
    if (!rest.empty()) Refuse("nothing after " + std::string(word), text);
    return action;
  }
  const auto unit = TakeNumber(rest, kMaxUnit);
  if (!unit || !rest.empty()) {
    Refuse("a microbatch up to " + std::to_string(kMaxUnit) + " last, as in 0F3", text);
  }
  action.unit = *unit;
  return action;
}

/// One cell: an action, several in parentheses, or none.
void ParseCell(std::string_view cell, int column, std::vector<Action>& row) {
  const std::string_view text = Trimmed(cell);
  if (text.empty()) return;
  if (text.front() != '(') return row.push_back(ParseAction(text, column));
  const auto close = text.find(')');
  if (close == std::string_view::npos || text.substr(close + 1) != kOverlap) {
    Refuse("(0F1;1B0)" + std::string(kOverlap), text);
  }
  std::string_view inside = text.substr(1, close - 1);
  while (true) {
    const auto end = inside.find(';');
    row.push_back(ParseAction(inside.substr(0, end), column));
    if (end == std::string_view::npos) return;
    inside.remove_prefix(end + 1);
  }
}

std::vector<Action> ParseRow(std::string_view line, std::size_t number) {
  std::vector<Action> row;
  for (int column = 0;; ++column) {
    const auto end = line.find(',');
    try {
      ParseCell(line.substr(0, end), column, row);
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument("row " + std::to_string(number) + " column " +
                                  std::to_string(column) + ": " + e.what());
    }
    if (end == std::string_view::npos) return row;
    line.remove_prefix(end + 1);
  }
}

/// "0>2 1>2" into pairs.
void ParseLinks(std::string_view text, ActionTable& table) {
  for (text = Trimmed(text); !text.empty(); text = Trimmed(text)) {
    const std::string_view whole = text;
    const auto from = TakeNumber(text, kMaxStage);
    const bool arrow = !text.empty() && text.front() == '>';
    if (arrow) text.remove_prefix(1);
    const auto to = TakeNumber(text, kMaxStage);
    if (!from || !arrow || !to || *from == *to) Refuse("# links FROM>TO ..., as in 0>2", whole);
    table.links.emplace_back(static_cast<int>(*from), static_cast<int>(*to));
  }
}

/// Reads comments with names or links, and ignores all others.
void ParseComment(std::string_view line, ActionTable& table) {
  std::string_view text = Trimmed(line.substr(1));
  if (text.starts_with("links ")) return ParseLinks(text.substr(6), table);
  if (!text.starts_with("stage ")) return;
  text.remove_prefix(6);
  const auto stage = TakeNumber(text, kMaxStage);
  text = Trimmed(text);
  if (!stage || text.empty() || text.front() != '=') return;
  const std::string quoted = Quoted(Trimmed(text.substr(1)));
  table.names[static_cast<int>(*stage)] = quoted.substr(1, quoted.size() - 2);
}

}  // namespace

const char* ToString(ActionKind kind) { return kWords[static_cast<std::size_t>(kind)].text.data(); }

bool Computes(ActionKind kind) { return kind <= ActionKind::kWeight; }

std::string ToString(const Action& action) {
  return std::to_string(action.stage) + ToString(action.kind) +
         (action.unit < 0 ? "" : std::to_string(action.unit));
}

std::vector<std::string> ActionTable::NamedModules() const {
  std::set<std::string> modules;
  for (const auto& [stage, name] : names) {
    if (name.rfind('.') != std::string::npos) modules.insert(name.substr(0, name.rfind('.')));
  }
  return {modules.begin(), modules.end()};
}

ActionTable ParseActionTable(std::string_view text) {
  ActionTable table;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (Trimmed(line).starts_with('#')) {
      ParseComment(Trimmed(line), table);
    } else if (!line.empty() || !text.empty()) {
      table.rows.push_back(ParseRow(line, table.rows.size()));
    }
  }
  while (!table.rows.empty() && table.rows.back().empty()) table.rows.pop_back();
  if (table.rows.empty()) throw std::invalid_argument("expected a row for each rank, got none");
  return table;
}

std::string ToCsv(const ActionTable& table) {
  std::string text;
  for (const auto& [stage, name] : table.names) {
    text += "# stage " + std::to_string(stage) + " = " + name + "\n";
  }
  if (!table.links.empty()) text += "# links";
  for (const auto& [from, to] : table.links) {
    text += " " + std::to_string(from) + ">" + std::to_string(to);
  }
  if (!table.links.empty()) text += "\n";
  for (const auto& row : table.rows) {
    int column = 0;
    for (auto action = row.begin(); action != row.end();) {
      for (; column < action->column; ++column) text += ',';
      const auto end = std::find_if(
          action, row.end(), [&](const Action& other) { return other.column != action->column; });
      const bool several = end - action > 1;
      text += several ? "(" : "";
      for (auto first = action; action != end; ++action) {
        text += (action == first ? "" : ";") + ToString(*action);
      }
      text += several ? ")" + std::string(kOverlap) : "";
    }
    text += '\n';
  }
  return text;
}

}  // namespace troupe
