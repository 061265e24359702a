#include <algorithm>

#include "trace/analyze/order.hpp"

namespace troupe {
namespace {

/// "        ^^ ^^" below the words of `text` that differ.
std::string Marks(const std::string& text, const std::vector<int>& differences) {
  std::string marks;
  int word = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == ' ') ++word;
    const bool differs =
        text[at] != ' ' && std::binary_search(differences.begin(), differences.end(), word);
    marks += differs ? '^' : ' ';
  }
  return marks.substr(0, marks.find_last_not_of(' ') + 1);
}

std::string Pad(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

bool Same(const ComparedOrder& a, const ComparedOrder& b) {
  return a.ran.stage == b.ran.stage && a.ran.text == b.ran.text && a.predicted == b.predicted;
}

}  // namespace

std::string Format(const OrderComparison& comparison, const RunTrace& trace) {
  struct Entry {
    std::string name;
    const ComparedOrder* order;
  };
  std::vector<Entry> entries;
  const auto& orders = comparison.orders;
  for (std::size_t begin = 0; begin < orders.size();) {
    std::size_t end = begin;
    while (end < orders.size() && orders[end].ran.stage == orders[begin].ran.stage) ++end;
    const bool same = std::all_of(orders.begin() + static_cast<std::ptrdiff_t>(begin),
                                  orders.begin() + static_cast<std::ptrdiff_t>(end),
                                  [&](const auto& order) { return Same(order, orders[begin]); });
    for (std::size_t i = begin; i < (same ? begin + 1 : end); ++i) {
      const PassOrder& ran = orders[i].ran;
      std::string name = ToString(trace.stages.at(static_cast<std::size_t>(ran.stage)));
      if (!same) {
        name += " dp" + std::to_string(ran.dp) + " rank " + std::to_string(ran.rank);
      }
      entries.push_back({std::move(name), &orders[i]});
    }
    begin = end;
  }
  std::size_t width = 0;
  for (const Entry& entry : entries) width = std::max(width, entry.name.size());
  std::string text;
  std::size_t differing = 0;
  for (const Entry& entry : entries) {
    const ComparedOrder& order = *entry.order;
    if (!comparison.not_predicted.empty()) {
      text += Pad(entry.name, width) + "  " + order.ran.text + '\n';
      continue;
    }
    text += Pad(entry.name, width) + "  ran   " + order.ran.text + '\n';
    text += std::string(width, ' ') + "  rule  " + order.predicted + '\n';
    if (order.differences.empty()) continue;
    ++differing;
    const std::string& longer =
        order.ran.text.size() < order.predicted.size() ? order.predicted : order.ran.text;
    text += std::string(width, ' ') + "        " + Marks(longer, order.differences) + '\n';
  }
  if (!comparison.not_predicted.empty()) {
    return text + "no prediction: " + comparison.not_predicted + '\n';
  }
  return text + (differing == 0
                     ? "as the rule predicts\n"
                     : std::to_string(differing) + " of " + std::to_string(entries.size()) +
                           " differ from the rule's prediction for messages that take no time\n");
}

}  // namespace troupe
