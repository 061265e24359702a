#include "trace/analyze/words.hpp"

namespace troupe {
namespace {

/// A boundary leads to a module, any other link to a stage of the same module.
std::string EndOf(const TraceIndex& index, const TraceLink* link, bool source) {
  if (link == nullptr) return "";
  const int stage = source ? link->from : link->to;
  return " from " + (link->boundary ? index.ModuleOf(stage) : index.StageName(stage));
}

}  // namespace

std::string Describe(const TraceIndex& index, const PassRecord& pass) {
  if (pass.kind == WorkKind::kCheckpoint) return "checkpoint of step " + std::to_string(pass.unit);
  const std::string kind = ToString(pass.kind);
  return IsPass(pass.kind) ? kind + InParentheses(index.places().Of(pass)) : kind;
}

std::string DescribeWork(const TraceIndex& index, int work) {
  const PassRecord& pass = index.work(work).pass;
  if (pass.kind == WorkKind::kCheckpoint) {
    return "writing the " + Describe(index, pass) + " (" + index.StageName(pass.stage) + ")";
  }
  const std::string text = ToString(pass.kind) + (" of " + index.StageName(pass.stage));
  return IsPass(pass.kind) ? text + InParentheses(index.places().Of(pass)) : text;
}

std::string DescribeHandling(const TraceIndex& index, int message) {
  const int work = index.WorkOf(message);
  if (work >= 0) return DescribeWork(index, work);
  const bool stored = index.message(message).role == MessageRole::kCheckpoint;
  return index.TypeName(message) +
         (stored ? " (checkpoint)" : InParentheses(index.places().OfMessage(index, message)));
}

std::string DescribeEdge(const TraceIndex& index, int message) {
  const TraceLink* const link = index.LinkOf(message);
  return index.TypeName(message) + (link == nullptr ? "" : " over " + link->name);
}

std::string DescribeWait(const TraceIndex& index, int message) {
  const TraceLink* const link = index.LinkOf(message);
  switch (index.message(message).role) {
    case MessageRole::kActivation:
      return "activation" + EndOf(index, link, true);
    case MessageRole::kGradient:
      return "gradient" + EndOf(index, link, false);
    case MessageRole::kInput:
      return "its input data";
    case MessageRole::kForwardDone:
      return "the end of its stage's forward";
    case MessageRole::kBackwardDone:
      return "the end of its stage's backward";
    case MessageRole::kWeightsDone:
      return "the end of its stage's weight gradients";
    case MessageRole::kReplicaDone:
      return "the other replicas (all-reduce)";
    case MessageRole::kGradientsReduced:
      return "the sums of gradients (all-reduce)";
    case MessageRole::kNorm:
      return "the gradient norm of all modules";
    case MessageRole::kUpdated:
      return "the parameter update";
    case MessageRole::kStepBegin:
      return "the next step";
    case MessageRole::kStepEnd:
      return "the end of the step";
    case MessageRole::kExchanged:
      return "the exchange of rows";
    case MessageRole::kStateMoved:
      return "the encoder's state";
    case MessageRole::kCheckpoint:
      return "the checkpoint";
    case MessageRole::kOther:
      break;
  }
  return DescribeEdge(index, message);
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
