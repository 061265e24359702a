#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/commands.hpp"
#include "cli/data_check.hpp"
#include "data/synth.hpp"

namespace troupe {

void AddData(CLI::App& app, Command& command) {
  auto* data = app.add_subcommand("data",
                                  "Check and make data sets.\n"
                                  "Exit code: 0 done, 1 failed, 2 wrong arguments.");
  data->require_subcommand(1);
  AddDataCheck(*data, command);
  auto* synth = data->add_subcommand(
      "synth",
      "Draw coloured shapes with captions, in the LLaVA format.\n"
      "The same options give the same rows and pixels on every machine; training\n"
      "and held-out rows never share an image.\n"
      "Exit code: 0 done, 1 a file cannot be written, 2 wrong arguments.");
  auto options = std::make_shared<SynthOptions>();
  synth->add_option("--out", options->folder, "folder to write into; made if missing")->required();
  synth->add_option("--train", options->num_train, "training rows")->capture_default_str();
  synth->add_option("--held-out", options->num_held_out, "held-out rows")->capture_default_str();
  synth->add_option("--seed", options->seed, "random seed")->capture_default_str();
  synth->add_option("--size", options->size, "side of an image in pixels")->capture_default_str();
  SetCommand(*synth, command, [options] {
    try {
      WriteShapes(*options);
    } catch (const std::invalid_argument& e) {
      std::cerr << "troupe data synth: " << e.what() << '\n';
      return static_cast<int>(kExitBadInput);
    }
    std::cout << options->folder << ": " << options->num_train << " training and "
              << options->num_held_out << " held-out rows\n";
    return static_cast<int>(kExitDone);
  });
}

}  // namespace troupe
