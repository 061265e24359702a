#include "trace/analyze/words.hpp"

#include <algorithm>
#include <array>

namespace troupe {
namespace {

/// The cause of a wait that ends with such a message.
struct Cause {
  MessageRole role;
  const char* text;
};

constexpr auto kCauses = std::to_array<Cause>({
    {MessageRole::kInput, "its input data"},
    {MessageRole::kForwardDone, "the end of its stage's forward"},
    {MessageRole::kBackwardDone, "the end of its stage's backward"},
    {MessageRole::kWeightsDone, "the end of its stage's weight gradients"},
    {MessageRole::kReplicaDone, "the other replicas (all-reduce)"},
    {MessageRole::kGradientsReduced, "the sums of gradients (all-reduce)"},
    {MessageRole::kNorm, "the gradient norm of all modules"},
    {MessageRole::kUpdated, "the parameter update"},
    {MessageRole::kStepBegin, "the next step"},
    {MessageRole::kStepEnd, "the end of the step"},
    {MessageRole::kExchanged, "the exchange of rows"},
    {MessageRole::kStateMoved, "the encoder's state"},
    {MessageRole::kCheckpoint, "the checkpoint"},
    {MessageRole::kSampleRead, "read"},
    {MessageRole::kSampleTokenized, "tokenize"},
    {MessageRole::kSampleDecoded, "decode"},
    {MessageRole::kSampleTransferred, "transfer"},
});

/// A boundary leads to a module, any other link to a stage of the same module.
std::string EndOf(const TraceIndex& index, const TraceLink* link, bool source) {
  if (link == nullptr) return "";
  const int stage = source ? link->from : link->to;
  return " from " + (link->boundary ? index.ModuleOf(stage) : index.StageName(stage));
}

/// " of mix665k.json"; empty if the message is not about samples of a source.
std::string OfSource(const TraceIndex& index, int message) {
  const int source = index.message(message).source;
  const auto& sources = index.trace().sources;
  return source < 0 || source >= std::ssize(sources)
             ? ""
             : " of " + sources[static_cast<std::size_t>(source)];
}

}  // namespace

std::string Describe(const TraceIndex& index, const PassRecord& pass) {
  if (pass.kind == WorkKind::kCheckpoint) return "checkpoint of step " + std::to_string(pass.unit);
  const std::string kind = ToString(pass.kind);
  if (IsForCheckpoint(pass.kind)) return kind + " of step " + std::to_string(pass.unit);
  return IsPass(pass.kind) ? kind + InParentheses(index.places().Of(pass)) : kind;
}

std::string DescribeWork(const TraceIndex& index, int work) {
  const PassRecord& pass = index.work(work).pass;
  if (pass.kind == WorkKind::kCheckpoint) {
    return "writing the " + Describe(index, pass) + " (" + index.StageName(pass.stage) + ")";
  }
  if (IsForCheckpoint(pass.kind)) {
    return Describe(index, pass) + " (" + index.StageName(pass.stage) + ")";
  }
  const std::string text = ToString(pass.kind) + (" of " + index.StageName(pass.stage));
  return IsPass(pass.kind) ? text + InParentheses(index.places().Of(pass)) : text;
}

std::string DescribeHandling(const TraceIndex& index, int message) {
  const int work = index.WorkOf(message);
  if (work >= 0) return DescribeWork(index, work);
  const bool stored = index.message(message).role == MessageRole::kCheckpoint;
  return index.TypeName(message) + OfSource(index, message) +
         (stored ? " (checkpoint)" : InParentheses(index.places().OfMessage(index, message)));
}

std::string DescribeSample(const TraceIndex& index, int message) {
  return DescribeWait(index, message) + OfSource(index, message) +
         InParentheses(index.places().OfMessage(index, message));
}

std::string DescribeEdge(const TraceIndex& index, int message) {
  const TraceLink* const link = index.LinkOf(message);
  return index.TypeName(message) + (link == nullptr ? "" : " over " + link->name);
}

std::string DescribeWait(const TraceIndex& index, int message) {
  const MessageRole role = index.message(message).role;
  const TraceLink* const link = index.LinkOf(message);
  if (role == MessageRole::kActivation) return "activation" + EndOf(index, link, true);
  if (role == MessageRole::kGradient) return "gradient" + EndOf(index, link, false);
  const auto found = std::ranges::find(kCauses, role, &Cause::role);
  return found == kCauses.end() ? DescribeEdge(index, message) : found->text;
}

int StartOf(const TraceIndex& index, const TraceWork& work) {
  int at = work.message;
  // The command to the device, the command to its lock step, and the message before the decision.
  for (int hop = 0; hop < 4 && at >= 0; ++hop) {
    at = index.message(at).cause;
    if (at < 0) return -1;
    const ActorKind receiver = index.KindOf(index.message(at).receiver);
    if (receiver != ActorKind::kLockStep && receiver != ActorKind::kDevice) return at;
  }
  return -1;
}

}  // namespace troupe
