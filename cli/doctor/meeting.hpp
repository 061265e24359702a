// The second half of `troupe doctor`: the processes of a job meet as they would to train, and test
// the network between them. Process 0 queries the others one after the other (talk.hpp) and judges.
#pragma once

#include <memory>

#include "cli/doctor/checks.hpp"
#include "cli/doctor/transfer.hpp"
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

/// The part of a process other than 0, once they have met.
DoctorOutcome AnswerAsMember(const DoctorMember& member, Joined joined);

/// Returns null, and adds a finding, if the data plane of this process cannot be opened.
std::unique_ptr<TransferEnd> OpenTransfers(const DoctorMember& member, Joined& joined,
                                           Findings& findings);

}  // namespace troupe
