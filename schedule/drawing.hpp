// Draws a simulated schedule: a row per device, time to the right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/stage_graph.hpp"
#include "schedule/action_table.hpp"
#include "schedule/schedule.hpp"
#include "schedule/simulate.hpp"

namespace troupe {

struct DrawnPass {
  int stage = 0;  ///< index in the StageGraph
  int chunk = 0;  ///< index of the stage among those of its device
  TimedPass timed;
};

struct DrawnRow {
  std::string name;               ///< "vision.s0"; "language.s0,s2" if stages share a device
  std::vector<DrawnPass> passes;  ///< by begin
  double bubble = 0.0;            ///< idle share of the makespan
  std::int64_t warmup_ns = 0;     ///< begin of its first backward
};

struct Drawing {
  std::string title;
  std::int64_t makespan_ns = 0;
  std::vector<DrawnRow> rows;  ///< by device
};

Drawing DrawingOf(const StageGraph& graph, const Schedule& schedule, const Simulation& simulation,
                  std::string title);

/// At most `width` characters a line, names included, but at least 20 for each device. A pass is
/// its microbatch followed by "-" for forwards, "=" for backwards, "~" for weights; "." and ":"
/// replace the first two in every second stage of a device. A microbatch of two digits needs a pass
/// of two characters.
std::string ToText(const Drawing& drawing, int width = 110);

/// One self-contained file; hovering over a pass shows its times.
std::string ToSvg(const Drawing& drawing);

/// The order of every device as a table. All needs of a cell are in earlier columns;
/// blank cells are the bubbles of equally long passes.
ActionTable ToTable(const Drawing& drawing, const StageGraph& graph);

}  // namespace troupe
