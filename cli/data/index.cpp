#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "app/run_job.hpp"
#include "cli/data/data.hpp"
#include "cli/data/opened_rows.hpp"
#include "configs/loader.hpp"
#include "layout/text.hpp"

namespace troupe {

OpenedRows OpenRows(const ConfigArguments& arguments) {
  OpenedRows opened{LoadConfig(arguments.path, arguments.overrides).config, nullptr};
  opened.source = std::dynamic_pointer_cast<RowSource>(OpenInputs(opened.config));
  if (opened.source == nullptr) {
    throw LaunchError(arguments.path + ": synthetic modules read no data");
  }
  return opened;
}

namespace {

void PrintSet(const std::string& name, const RowSet& rows) {
  const RowSums& sums = rows.sums();
  std::printf("%s: %s, %s, %lld bad, %s tokens\n", name.c_str(),
              Counted(static_cast<std::int64_t>(rows.num_files()), "file").c_str(),
              Counted(sums.rows, "row").c_str(), static_cast<long long>(sums.bad),
              Millions(sums.tokens).c_str());
  if (rows.cache_folder().empty()) {
    std::printf("  small: indexed at each start, in memory\n");
  } else {
    std::printf("  indexes in %s\n", rows.cache_folder().c_str());
  }
}

int IndexSets(const ConfigArguments& arguments) {
  const OpenedRows opened = OpenRows(arguments);
  for (const std::string& line : opened.source->skipped_lines()) std::printf("%s\n", line.c_str());
  PrintSet(opened.config.data.train_name(), opened.source->rows(/*train=*/true));
  if (!opened.config.data.held_out.empty()) {
    PrintSet(opened.config.data.held_out, opened.source->rows(/*train=*/false));
  }
  return kExitDone;
}

}  // namespace

void AddDataIndex(CLI::App& data, Command& command) {
  auto* verb = data.add_subcommand(
      "index",
      "Index the rows that a configuration reads. A run builds missing indexes itself; this "
      "builds\n"
      "them beforehand. Stopped and started again, it goes on where it was.\n"
      "Exit code: 0 done, 1 failed, 2 wrong arguments, configuration or data.");
  auto arguments = std::make_shared<ConfigArguments>();
  AddConfigArguments(*verb, *arguments);
  SetCommand(*verb, command, [arguments] { return IndexSets(*arguments); });
}

}  // namespace troupe
