// Texts for events, shared by all analyses.
#pragma once

#include <string>

#include "trace/analyze/index.hpp"

namespace troupe {

/// "F (step 39 mb 1)", "update", "checkpoint of step 39".
std::string Describe(const TraceIndex& index, const PassRecord& pass);
/// "F of language.s0 (step 39 mb 1)", "writing the checkpoint of step 39 (language.s0)". Works
/// without the message that started it.
std::string DescribeWork(const TraceIndex& index, int work);
/// "F of language.s0 (step 39 mb 1)" for a device; else "Activation (step 39 mb 1)", "RoundBegin",
/// "ShardStored (checkpoint)".
std::string DescribeHandling(const TraceIndex& index, int message);
/// Of a message from a feed machine: "decode of mix665k.json (step 39 mb 1)".
std::string DescribeSample(const TraceIndex& index, int message);
/// "Activation over vision>language", "Gradient over language.s0>s1"; the type alone without a
/// link.
std::string DescribeEdge(const TraceIndex& index, int message);
/// The cause of its receiver's wait: "activation from vision", "the other replicas (all-reduce)".
std::string DescribeWait(const TraceIndex& index, int message);

/// The message for which the device had waited: it made the deciding actor (a stage, a phase, an
/// update) start `work`. -1: it is not in the trace.
int StartOf(const TraceIndex& index, const TraceWork& work);

}  // namespace troupe
