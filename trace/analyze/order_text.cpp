#include <algorithm>
#include <utility>

#include "layout/at.hpp"
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

/// One entry for each stage if its devices ran alike, else one for each device.
struct Entry {
  std::string name;
  const ComparedOrder* order;
};

std::vector<Entry> EntriesOf(const std::vector<ComparedOrder>& orders, const RunTrace& trace) {
  std::vector<Entry> entries;
  for (auto begin = orders.begin(); begin != orders.end();) {
    const auto end = std::find_if(begin, orders.end(), [&](const ComparedOrder& order) {
      return order.ran.stage != begin->ran.stage;
    });
    const bool alike = std::all_of(begin, end, [&](const ComparedOrder& order) {
      return order.ran.text == begin->ran.text && order.predicted == begin->predicted;
    });
    for (auto at = begin; at != (alike ? begin + 1 : end); ++at) {
      std::string name = ToString(trace.stages.at(At(at->ran.stage)));
      if (!alike)
        name += " dp" + std::to_string(at->ran.dp) + " rank " + std::to_string(at->ran.rank);
      entries.push_back({std::move(name), &*at});
    }
    begin = end;
  }
  return entries;
}

}  // namespace

std::string Format(const OrderComparison& comparison, const RunTrace& trace) {
  const std::vector<Entry> entries = EntriesOf(comparison.orders, trace);
  std::size_t width = 0;
  for (const Entry& entry : entries) width = std::max(width, entry.name.size());
  std::string text;
  for (const Entry& entry : entries) {
    const ComparedOrder& order = *entry.order;
    if (!comparison.not_predicted.empty()) {
      text += Pad(entry.name, width) + "  " + order.ran.text + '\n';
      continue;
    }
    text += Pad(entry.name, width) + "  ran   " + order.ran.text + '\n';
    text += std::string(width, ' ') + "  rule  " + order.predicted + '\n';
    if (order.differences.empty()) continue;
    const std::string& longer =
        order.ran.text.size() < order.predicted.size() ? order.predicted : order.ran.text;
    text += std::string(width, ' ') + "        " + Marks(longer, order.differences) + '\n';
  }
  if (!comparison.not_predicted.empty()) {
    return text + "no prediction: " + comparison.not_predicted + '\n';
  }
  const auto differing = std::ranges::count_if(
      comparison.orders, [](const ComparedOrder& order) { return !order.differences.empty(); });
  if (differing == 0) return text + "as the rule predicts\n";
  return text + std::to_string(differing) + " of " + std::to_string(comparison.orders.size()) +
         " orders, one per stage and rank, differ from the rule's prediction for messages that "
         "take "
         "no time\n";
}

}  // namespace troupe
