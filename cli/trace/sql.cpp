#include "trace/export/sql.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/trace/trace.hpp"

namespace troupe {

void AddTraceSql(CLI::App& trace, Command& command) {
  struct Arguments {
    std::string run;
    std::string query;
    std::string format = "table";
  };
  auto arguments = std::make_shared<Arguments>();
  auto* verb = AddRunVerb(trace, "sql",
                          "Answer a SELECT in SQLite's words, over tables of messages, work, "
                          "actors, stages,\nedges, steps and processes. Without a query: the "
                          "tables and what their columns are.",
                          arguments->run);
  verb->add_option("QUERY", arguments->query, "\"select type, count(*) from messages group by 1\"");
  AddChoice(*verb, "--format", kTableFormats, arguments->format);
  SetAction(*verb, command, [arguments] {
    if (arguments->query.empty()) {
      std::cout << TraceDatabase::Schema();
      return static_cast<int>(kExitDone);
    }
    const OpenTrace run(arguments->run);
    std::cout << Write(TraceDatabase(run.index, run.steps).Query(arguments->query),
                       arguments->format);
    return static_cast<int>(kExitDone);
  });
}

}  // namespace troupe
