// Indexes the actions of a table: the place of each, and the actions that must end before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedule/action_table.hpp"

namespace troupe {

class ActionIndex {
 public:
  struct Place {
    std::size_t row = 0;
    std::size_t index = 0;  ///< into the row's actions
  };

  /// `table` must outlive it. problem() returns the first fault: an action given twice, a stage on
  /// two rows, passes missing from all rows; empty: none.
  explicit ActionIndex(const ActionTable& table);
  const std::string& problem() const { return problem_; }

  int num_stages() const { return stages_; }
  std::int64_t num_units() const { return units_; }
  const Action& At(const Place& place) const { return table_.rows[place.row][place.index]; }
  std::string Where(const Place& place) const;     ///< "row 2 column 14: 3B5"
  std::string Describe(const Place& place) const;  ///< "3B5 (row 2 column 14)"

  struct Needs {
    std::vector<Place> places;
    std::string lacking;  ///< "row 1 column 3: 3F5 without 3RECV_F5"; empty: none
  };
  /// The actions that must end before this one, including sends and receives if the file has any.
  Needs NeedsOf(const Place& place) const;

 private:
  void AddRow(std::size_t row);
  void LinkStages();
  void FindMissing();
  void FindMissing(int stage, std::int64_t unit);
  std::optional<Place> Find(ActionKind kind, int stage, std::int64_t unit) const;
  std::optional<Place> FindBackward(int stage, std::int64_t unit) const;
  void NeedFrom(const Place& place, bool forward, Needs& needs) const;
  void NeedSent(const Place& place, bool forward, Needs& needs) const;

  const ActionTable& table_;
  std::string problem_;
  int stages_ = 0;
  std::int64_t units_ = 0;
  bool communicates_ = false;        ///< the file has sends and receives
  std::map<int, std::size_t> home_;  ///< by stage: its row
  std::map<int, std::vector<int>> before_;
  std::map<int, std::vector<int>> after_;
  std::unordered_map<std::uint64_t, Place> places_;
};

}  // namespace troupe
