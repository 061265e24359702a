// A trace as tables of SQLite, in memory and for reading only.
#pragma once

#include <memory>
#include <string>

#include "trace/analyze/steps.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {

class TraceDatabase {
 public:
  /// Throws std::runtime_error when SQLite refuses (memory).
  TraceDatabase(const TraceIndex& index, const Steps& steps);
  ~TraceDatabase();
  TraceDatabase(const TraceDatabase&) = delete;
  TraceDatabase& operator=(const TraceDatabase&) = delete;

  /// The rows of one SELECT. Throws std::invalid_argument in SQLite's words: a mistake, something
  /// that would write or reach another file, more than one statement.
  Table Query(const std::string& sql) const;

  /// The tables and what their columns are.
  static std::string Schema();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
