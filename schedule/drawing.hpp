// A simulated schedule as a picture: a row per device, time to the right.
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
  int chunk = 0;  ///< place of the stage among those of its device
  TimedPass timed;
};

struct DrawnRow {
  std::string name;               ///< "vision.s0"; "language.s0,s2" where stages share a device
  std::vector<DrawnPass> passes;  ///< by begin
  double bubble = 0.0;            ///< share of the makespan in which nothing runs
  std::int64_t warmup_ns = 0;     ///< when its first backward begins
};

struct Drawing {
  std::string title;
  std::int64_t makespan_ns = 0;
  std::vector<DrawnRow> rows;  ///< by device
};

Drawing DrawingOf(const StageGraph& graph, const Schedule& schedule, const Simulation& simulation,
                  std::string title);

/// At most `width` characters a line, names included, as long as that leaves each device 20.
/// Forwards are their microbatch and "-", backwards "=", weights "~"; "." and ":" in every second
/// stage of a device. A microbatch of two digits needs a pass of two characters.
std::string ToText(const Drawing& drawing, int width = 110);

/// One file without links: hover over a pass for its times.
std::string ToSvg(const Drawing& drawing);

/// The order of every device as a table. Everything that a cell needs is in an earlier column;
/// blank cells are bubbles if all passes took equally long.
ActionTable ToTable(const Drawing& drawing, const StageGraph& graph);

}  // namespace troupe
