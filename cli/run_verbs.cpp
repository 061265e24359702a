// The verbs that run a job, and `troupe key`.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "app/cluster_run.hpp"
#include "app/member.hpp"
#include "app/run_directory.hpp"
#include "cli/commands.hpp"
#include "cluster/run_key.hpp"
#include "configs/precision_words.hpp"

namespace troupe {
namespace {

void AddLocalArguments(CLI::App& app, ClusterArguments& arguments) {
  app.add_option("--local", arguments.local,
                 "run in K processes of this machine instead of one, as on a cluster")
      ->type_name("K")
      ->check(CLI::Range(1, 256));
}

void AddResumeArguments(CLI::App& app, ClusterArguments& arguments) {
  const auto not_empty = [](const std::string& path) {
    return path.empty() ? std::string("expected a run directory, got \"\"") : std::string();
  };
  auto* resume =
      app.add_option(
             "--resume", arguments.resume,
             "resume this run after its newest checkpoint, in its directory; runs/latest or\n"
             "NAME for the newest runs/NAME-TIME. Without CONFIG with the run's own. Layouts,\n"
             "placements, ranks, precision and resources may differ, and with --set the\n"
             "optimizer (docs/cli.md)")
          ->type_name("RUN_DIRECTORY")
          ->transform(FindRun)
          ->check(not_empty);
  app.add_option("--from", arguments.from,
                 "begin a new run with the whole state of this one: parameters, moments, step and\n"
                 "place in the data")
      ->type_name("RUN_DIRECTORY")
      ->transform(FindRun)
      ->check(not_empty)
      ->excludes(resume);
  app.add_option("--from-step", arguments.from_step,
                 "with --from: from the checkpoint after this step instead of the newest")
      ->type_name("STEP");
  app.add_option("--accept", arguments.accept,
                 "with --resume and --from: modules and projectors that may be new, left out,\n"
                 "frozen, trained or other than before, and \"data\" for other samples or another\n"
                 "order of them, from its beginning")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false);
}

RunKey ReadRunKey(const std::string& path) {
  MemberArguments arguments;
  arguments.key_file = path;
  return ReadKey(arguments);
}

/// Adds --plant-fault, which is for tests and hidden from help.
void AddFaults(CLI::App& app, std::vector<std::string>& faults) {
  app.add_option("--plant-fault", faults)->allow_extra_args(false)->group("");
}

/// Adds --steps and --dtype. `verb` precedes their descriptions.
void AddVerifyArguments(CLI::App& app, WorkArguments& arguments, const std::string& verb = "") {
  app.add_option("--steps", arguments.steps, verb + "training steps to compare")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  AddChoice(app, "--dtype", kPrecisionWords, arguments.dtype,
            verb + "precision of both sides (float64 leaves rounding no room to hide a fault)");
}

}  // namespace

void AddTrain(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "train",
      "Train a configuration in this process, every rank on a separate thread, or\n"
      "with --local in several processes of this machine.\n"
      "Prints a line per step and leaves a run directory with the resolved\n"
      "configuration, metrics.jsonl, the trace and the final weights. Ctrl-C finishes the\n"
      "step under way and saves; a second one ends at once.\n"
      "Exit code: 0 done, 1 the run failed, 2 configuration or data are wrong, 3 a process\n"
      "was lost, 4 the processes did not find each other, 130, 143 or 129 interrupted and saved\n"
      "(docs/cli.md).");
  auto arguments = std::make_shared<ClusterArguments>();
  AddConfigArguments(*verb, arguments->work.config, false);
  AddFaults(*verb, arguments->work.faults);
  AddLocalArguments(*verb, *arguments);
  verb->add_option("--key-file", arguments->member.key_file,
                   "the run key, by which feed machines may take part (data.feed_address); see\n"
                   "`troupe key`")
      ->type_name("FILE")
      ->envname("TROUPE_KEY_FILE");
  AddResumeArguments(*verb, *arguments);
  verb->add_option("--restarts", arguments->restarts,
                   "with --local: times to start a lost process again; the others wait for it\n"
                   "and all go on from the newest state in memory (checkpoint.replicas) or on\n"
                   "disk")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  SetCommand(*verb, command, [arguments] { return RunHere(*arguments); });
}

void AddVerify(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "verify",
      "Verify a layout: train it and an unsharded reference (a plain libtorch loop) from\n"
      "the same weights on the same samples, and compare after every step each\n"
      "parameter's gradient, value and optimizer state with the reference, relative to\n"
      "that tensor's own maximum. Limits: 1e-5 in float32, 1e-10 in float64, 0.15 in bfloat16\n"
      "(docs/verify.md).\n"
      "Exit code: 0 equal, 1 different or failed, 2 configuration or data are wrong; with\n"
      "--local also 3 a process was lost, 4 the processes did not find each other.");
  auto arguments = std::make_shared<ClusterArguments>();
  arguments->work.verify = true;
  AddConfigArguments(*verb, arguments->work.config);
  AddLocalArguments(*verb, *arguments);
  AddVerifyArguments(*verb, arguments->work);
  SetCommand(*verb, command, [arguments] { return RunHere(*arguments); });
}

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
  AddFaults(*verb, arguments->work.faults);
  verb->add_option("--node", arguments->member.node,
                   "number of this node and of all nodes, counted from 0: 1/4")
      ->type_name("I/N");
  verb->add_option("--join", arguments->member.join, "where node 0 listens")
      ->type_name("HOST:PORT");
  AddMemberArguments(*verb, arguments->member);
  verb->add_flag("--spare", arguments->member.spare,
                 "wait to take the place of a process that is lost and does not come back within\n"
                 "2 s; with --restarts");
  AddResumeArguments(*verb, *arguments);
  verb->add_option(
          "--restarts", arguments->restarts,
          "times to start a lost process again; the others wait for it\n"
          "(cluster.wait_for_spare_s; with cluster.elastic they then go on without it) and\n"
          "all go on from the newest state in memory (checkpoint.replicas) or on disk; the\n"
          "same on every node")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  verb->add_flag("--verify", arguments->work.verify, "verify the layout instead of training it");
  AddVerifyArguments(*verb, arguments->work, "verify: ");
  // Hidden: passed by a launcher.
  verb->add_option("--generation", arguments->generation)->group("");
  verb->add_option("--into", arguments->into)->group("");
  verb->add_option("--start", arguments->start)->group("");
  SetCommand(*verb, command, [arguments] { return RunNodeOfJob(*arguments); });
}

void AddKey(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "key",
      "Make a run key: a file that only you can read, by which the nodes of a job authenticate\n"
      "each other. Every node needs a copy. With --feed-of a feed key: feed machines of jobs with "
      "that\n"
      "run key need it, and it admits to nothing else.\n"
      "Exit code: 0 made, 1 it could not be written, 2 the run key cannot be read.");
  auto path = std::make_shared<std::string>();
  verb->add_option("FILE", *path, "must not exist yet")->required();
  auto run_key = std::make_shared<std::string>();
  verb->add_option("--feed-of", *run_key, "make the feed key of this run key")
      ->type_name("RUN_KEY");
  SetCommand(*verb, command, [path, run_key] {
    if (run_key->empty()) {
      RunKey::Generate().WriteFile(*path);
      std::cout << *path << ": a new run key\n";
    } else {
      ReadRunKey(*run_key).WriteFeedFile(*path);
      std::cout << *path << ": the feed key of " << *run_key << '\n';
    }
    return static_cast<int>(kExitDone);
  });
}

}  // namespace troupe
