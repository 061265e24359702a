#include "trace/analyze/messages.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/trace/trace.hpp"

namespace troupe {

void AddTraceMessages(CLI::App& trace, Command& command) {
  struct Arguments {
    std::string run;
    MessageFilter filter;
    std::int64_t step = 0;
    std::string format = "table";
  };
  auto arguments = std::make_shared<Arguments>();
  auto* verb = AddRunVerb(
      trace, "messages",
      "List messages by the time at which they were sent (ms since the trace began), with\n"
      "the time on the way, in the mailbox, and in the handler; `cause` is the message\n"
      "whose handling sent it. A missing time is of an event that has not happened.",
      arguments->run);
  verb->add_option("--actor", arguments->filter.actor,
                   "only from or to actors whose name contains this, as language.s1")
      ->type_name("A");
  AddStep(*verb, arguments->step, "only of this training step");
  verb->add_option("--type", arguments->filter.type, "only of this type, as Activation")
      ->type_name("T");
  AddChoice(*verb, "--format", kTableFormats, arguments->format);
  verb->add_option("--limit", arguments->filter.limit, "only the first N")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  SetAction(*verb, command, [arguments] {
    const OpenedTrace run(arguments->run);
    if (arguments->step != 0) arguments->filter.step = arguments->step;
    const FoundMessages found = FindMessages(run.index, run.steps, arguments->filter);
    std::cout << Write(found.table, arguments->format);
    if (found.found > found.table.rows.size()) {
      std::cerr << "troupe trace messages: the first " << found.table.rows.size() << " of "
                << found.found << '\n';
    }
    return static_cast<int>(kExitDone);
  });
}

}  // namespace troupe
