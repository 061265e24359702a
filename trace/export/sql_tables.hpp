// The tables of TraceDatabase: what they are called, and how a trace gets into them.
#pragma once

#include <span>
#include <sqlite3.h>
#include <string>

#include "trace/analyze/steps.hpp"

namespace troupe {

/// One CREATE TABLE each, with a comment behind every column.
std::span<const char* const> TraceTables();

/// "processes", "messages", ...
std::span<const std::string> TraceTableNames();

/// Fills the tables, which must be there and empty. Throws std::runtime_error with SQLite's words.
void FillTables(sqlite3* database, const TraceIndex& index, const Steps& steps);

}  // namespace troupe
