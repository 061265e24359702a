#include "actors/spawn_actors.hpp"
#include "files/file_error.hpp"
#include "trace/recorder.hpp"

namespace troupe {
namespace {

/// The names that the file has of the job, and the room that they take.
RecorderOptions OptionsOf(const NodeConfig& config) {
  const JobPlan& plan = *config.plan;
  RecorderOptions options;
  options.processes.clear();
  for (const auto& process : config.processes->processes()) {
    options.processes.push_back(process.name);
  }
  options.capacity = config.trace_records;
  options.cores = config.cores;
  const StageGraph& graph = plan.graph();
  for (std::size_t i = 0; i < graph.stages().size(); ++i) {
    options.stages.push_back(graph.IdOf(static_cast<int>(i)));
  }
  // A fixed part, and a name per actor.
  options.names_bytes =
      (std::size_t{1} << 16) + graph.stages().size() * 64 + plan.lock_steps().size() * 1024;
  for (const StageLink& link : graph.links()) {
    const bool boundary = link.edge >= 0;
    options.links.push_back({boundary ? plan.edges()[static_cast<std::size_t>(link.edge)].name
                                      : graph.StageName(link.from) + ">" + graph.StageName(link.to),
                             link.from, link.to, boundary});
  }
  return options;
}

}  // namespace

std::string OpenTraceFile(NodePointer self, const OpenTrace& request) {
  const NodeState& s = self->state;
  if (!s.config.trace) return "";
  RecorderOptions options = OptionsOf(s.config);
  // Other processes are known once they have introduced themselves; this request of process 0 may
  // come before that.
  const caf::strong_actor_ptr& sender = self->current_sender();
  if (sender) s.config.trace->KnowProcess(sender->node(), 0);
  std::string error;
  if (!request.folder.empty()) {
    const std::string& name = options.processes[static_cast<std::size_t>(s.config.self)];
    options.path = request.folder + "/" + name + kTraceExtension;
    try {
      MakeFolders(request.folder);
      s.config.trace->Open(options);
      return "";
    } catch (const std::exception& e) {
      // Process 0 must have the file; another may not see the folder, and trains without a trace.
      if (s.config.self == 0) throw;
      error = "no trace of " + name + ": " + e.what();
    }
  }
  options.path.clear();
  s.config.trace->Open(options);
  return error;
}

}  // namespace troupe
