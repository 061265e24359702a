// `troupe feed`.
#include "app/feed.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include "app/member.hpp"
#include "cli/commands.hpp"

namespace troupe {

void AddFeed(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "feed",
      "Prepare samples for a job on a machine without ranks: read, tokenize and decode them.\n"
      "Start it before or after the job, on any number of machines; it needs the data, the\n"
      "tokenizer and the folders of the models. The job goes on if it ends. Ctrl-C ends it.\n"
      "Exit code: 0 the job is done, 1 the job failed, 2 configuration or data are wrong, 4 it "
      "did\n"
      "not find the job or does not fit it (docs/data.md).");
  auto arguments = std::make_shared<FeedArguments>();
  AddConfigArguments(*verb, arguments->config);
  verb->add_option(
          "--node", arguments->node,
          "number of this machine and of all feed machines, counted from 0: 1/2 is named f1\n"
          "(default: named as its host)")
      ->type_name("I/N");
  verb->add_option("--at", arguments->at,
                   "where process 0 of the job takes samples\n"
                   "(default: data.feed_address)")
      ->type_name("HOST:PORT");
  verb->add_option("--key-file", arguments->key_file,
                   "the feed key, or the run key (or TROUPE_KEY_FILE); see `troupe key`")
      ->type_name("FILE")
      ->envname("TROUPE_KEY_FILE");
  verb->add_option("--threads", arguments->threads,
                   "samples that are prepared at a time (default: one for each core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  verb->add_option("--wait", arguments->wait_s,
                   "end when the job does not come, or does not come back, for so long\n"
                   "(default: wait for ever)")
      ->type_name("SECONDS")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  SetCommand(*verb, command, [arguments] { return RunFeed(*arguments); });
}

}  // namespace troupe
