#include "schedule/csv_orders.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace troupe {
namespace {

/// Far more than anybody runs, and far from where numbers end.
constexpr int kMaxNumber = 1'000'000;

constexpr std::array<std::string_view, 8> kSkipped = {
    "SEND_F", "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD", "REDUCE_SCATTER"};

/// One entry that is a pass. `both` is a backward with its weights.
struct Entry {
  StagePass at;
  bool both = false;
};

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\"";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// The digits that `text` begins with; takes them away. -1: there are none, or too many.
int TakeNumber(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number > kMaxNumber) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// A pass, or nothing for what is skipped. Throws with the entry's own words.
std::vector<Entry> ParseEntry(std::string_view text) {
  const std::string whole(text);
  const auto refuse = [&whole] {
    throw std::invalid_argument(
        "expected STAGE, one of F, B, I, W, and MICROBATCH as in 0F3, got \"" +
        whole.substr(0, 40) + "\"");
  };
  const int stage = TakeNumber(text);
  if (stage < 0) refuse();
  const auto digits = text.find_first_of("0123456789");
  const std::string_view action = text.substr(0, digits);
  text.remove_prefix(action.size());
  if (std::ranges::find(kSkipped, action) != kSkipped.end()) return {};
  const int unit = TakeNumber(text);
  if (unit < 0 || !text.empty()) refuse();
  if (action == "F") return {{{stage, {PassKind::kForward, unit}}}};
  if (action == "B") return {{{stage, {PassKind::kBackward, unit}}, true}};
  if (action == "I") return {{{stage, {PassKind::kBackward, unit}}}};
  if (action != "W") refuse();
  return {{{stage, {PassKind::kWeight, unit}}}};
}

std::vector<Entry> ParseRow(const std::string& row, std::size_t number) {
  std::vector<Entry> entries;
  std::size_t place = 0;
  for (std::size_t begin = 0; begin <= row.size(); ++place) {
    const std::size_t end = std::min(row.find(',', begin), row.size());
    const std::string_view text = Trimmed(std::string_view(row).substr(begin, end - begin));
    begin = end + 1;
    if (text.empty()) continue;
    try {
      const auto parsed = ParseEntry(text);
      entries.insert(entries.end(), parsed.begin(), parsed.end());
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("row " + std::to_string(number) + ", entry " +
                                  std::to_string(place) + ": " + error.what());
    }
  }
  return entries;
}

}  // namespace

std::vector<DeviceOrder> ParseCsvOrders(const std::string& text) {
  std::vector<std::vector<Entry>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!Trimmed(line).empty()) rows.push_back(ParseRow(line, rows.size()));
  }
  if (rows.empty()) throw std::invalid_argument("expected a row for each rank, got none");
  std::set<int> split;
  for (const auto& row : rows) {
    for (const Entry& entry : row) {
      if (!entry.both && entry.at.pass.kind != PassKind::kForward) split.insert(entry.at.stage);
    }
  }
  std::vector<DeviceOrder> orders;
  for (const auto& row : rows) {
    DeviceOrder& order = orders.emplace_back();
    for (const Entry& entry : row) {
      order.push_back(entry.at);
      if (!entry.both || !split.contains(entry.at.stage)) continue;
      order.push_back({entry.at.stage, {PassKind::kWeight, entry.at.pass.unit}});
    }
  }
  return orders;
}

std::string ToCsv(const std::vector<DeviceOrder>& orders) {
  std::set<int> split;
  for (const DeviceOrder& order : orders) {
    for (const StagePass& at : order) {
      if (at.pass.kind == PassKind::kWeight) split.insert(at.stage);
    }
  }
  std::string text;
  for (const DeviceOrder& order : orders) {
    std::string row;
    for (const StagePass& at : order) {
      std::string pass = ToString(at.pass);
      if (at.pass.kind == PassKind::kBackward && split.contains(at.stage)) pass.front() = 'I';
      row += (row.empty() ? "" : ",") + std::to_string(at.stage) + pass;
    }
    text += row + "\n";
  }
  return text;
}

}  // namespace troupe
