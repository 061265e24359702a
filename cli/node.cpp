#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "app/cluster_run.hpp"
#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"
#include "cluster/run_key.hpp"

namespace troupe {
namespace {

/// Adds the hidden options that a launcher passes to its children.
void AddAttemptArguments(CLI::App& verb, ClusterArguments& arguments) {
  verb.add_option("--attempt", arguments.attempt)->group("");
  verb.add_option("--into", arguments.into)->group("");
}

}  // namespace

void AddNode(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "node",
      "Run one node's part of a job: the same command on each node. Which node this is comes\n"
      "from --node or from the launcher's variables (srun, mpirun, torchrun, Kubernetes\n"
      "indexed jobs); where node 0 is, from --join, cluster.join or the launcher. Sources that\n"
      "disagree are an error (docs/launching.md).\n"
      "Exit code: as for train, and 4 when the processes did not find each other or do not fit\n"
      "together.");
  auto arguments = std::make_shared<ClusterArguments>();
  AddConfigArguments(*verb, arguments->work.config, false);
  AddFaultArgument(*verb, arguments->work.faults);
  verb->add_option("--node", arguments->member.node,
                   "number of this node and of all nodes, counted from 0: 1/4")
      ->type_name("I/N");
  verb->add_option("--join", arguments->member.join, "where node 0 listens")
      ->type_name("HOST:PORT");
  AddMemberArguments(*verb, arguments->member);
  AddResumeArgument(*verb, *arguments);
  verb->add_option("--restarts", arguments->restarts,
                   "times to restart, from the newest checkpoint, when a process is lost; the\n"
                   "same on every node")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  verb->add_flag("--verify", arguments->work.verify, "verify the layout instead of training it");
  AddVerifyArguments(*verb, arguments->work);
  AddAttemptArguments(*verb, *arguments);
  SetCommand(*verb, command, [arguments] { return RunNodeOfJob(*arguments); });
}

void AddKey(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "key",
      "Make a run key: a file that only you can read, by which the nodes of a job authenticate\n"
      "each other. Every node needs a copy.\n"
      "Exit code: 0 made, 1 it could not be written.");
  auto path = std::make_shared<std::string>();
  verb->add_option("FILE", *path, "must not exist yet")->required();
  SetCommand(*verb, command, [path] {
    RunKey::Generate().WriteFile(*path);
    std::cout << *path << ": a new run key\n";
    return static_cast<int>(kExitDone);
  });
}

}  // namespace troupe
