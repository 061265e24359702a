#include "tests/torch/processes.hpp"

#include <stdexcept>

namespace troupe {

std::vector<double> BytesOfMicrobatch(const Config& config, const Inputs& inputs) {
  Processes processes(config);
  Job job(config, processes.groups());
  std::vector<double> before(static_cast<std::size_t>(config.cluster.ranks));
  const auto received_in = [&](std::size_t microbatches) {
    job.Train(std::vector<Inputs>(microbatches, inputs), 1.0 / 20.0);
    job.ReduceGradients();
    std::vector<double> bytes;
    for (std::size_t rank = 0; rank < before.size(); ++rank) {
      const auto all =
          static_cast<double>(processes.network().bytes_received(static_cast<int>(rank)));
      bytes.push_back(all - before[rank]);
      before[rank] = all;
    }
    return bytes;
  };
  received_in(1);  // the first collectives also meet
  const std::vector<double> one = received_in(1);
  std::vector<double> each = received_in(3);
  for (std::size_t rank = 0; rank < each.size(); ++rank) each[rank] = (each[rank] - one[rank]) / 2;
  if (!processes.network().fault().empty()) throw std::runtime_error(processes.network().fault());
  return each;
}

Config WithLayers(Config config, std::int64_t layers) {
  ModuleOf(config, "language").As<LlamaConfig>().layers = layers;
  return config;
}

}  // namespace troupe
