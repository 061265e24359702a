// The second half of `troupe doctor`: the processes of a job meet as they would to train, and try
// what lies between them. Process 0 asks one after the other (talk.hpp) and judges.
#pragma once

#include <string>

#include "cli/doctor/checks.hpp"
#include "cluster/join.hpp"
#include "cluster/process_plan.hpp"
#include "cluster/run_key.hpp"
#include "configs/config.hpp"

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
  Findings findings;   ///< process 0: of all; others: their own
  bool fails = false;  ///< the job would
  bool told = false;   ///< process 0 knows the findings of this one
};

/// Ends within the join timeout and some minutes per process, however slow the network; a failure
/// of any kind is a finding.
DoctorOutcome MeetAndMeasure(DoctorMember member);

}  // namespace troupe
