// The second half of `troupe doctor`: the processes of a job meet as they would to train, and test
// the network between them. Process 0 queries the others one after the other (talk.hpp) and judges.
#pragma once

#include <string>

#include "cli/doctor/checks.hpp"
#include "cluster/join.hpp"
#include "cluster/run_key.hpp"
#include "configs/config.hpp"
#include "plan/process_plan.hpp"

namespace troupe {

struct DoctorMember {
  const Config& config;
  const ProcessPlan& plan;
  ProcessId self = 0;
  const RunKey& key;
  JoinOptions join;  ///< see JoinOptionsOf
  Findings own;      ///< of this machine
};

struct DoctorOutcome {
  Findings findings;      ///< process 0: of all; others: their own
  bool fails = false;     ///< the job would fail
  bool reported = false;  ///< process 0 has the findings of this process
};

/// Ends within the join timeout and some minutes per process, however slow the network. Any failure
/// becomes a finding.
DoctorOutcome MeetAndMeasure(DoctorMember member);

}  // namespace troupe
