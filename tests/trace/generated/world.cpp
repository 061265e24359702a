#include "tests/trace/generated/world.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace troupe::generated {
namespace {

std::size_t Index(int i) { return static_cast<std::size_t>(i); }

/// As messages/facts.cpp has it.
MessageRole RoleOf(const std::string& type) {
  using enum MessageRole;
  static const std::map<std::string, MessageRole> roles = {{"Activation", kActivation},
                                                           {"Slice", kActivation},
                                                           {"Gradient", kGradient},
                                                           {"GradientSlice", kGradient},
                                                           {"Input", kInput},
                                                           {"ForwardDone", kForwardDone},
                                                           {"BackwardDone", kBackwardDone},
                                                           {"BackwardsDone", kReplicaDone},
                                                           {"GradientsReduced", kGradientsReduced},
                                                           {"ApplyUpdate", kNorm},
                                                           {"ShardStored", kCheckpoint},
                                                           {"RoundBegin", kStepBegin}};
  const auto found = roles.find(type);
  return found == roles.end() ? kOther : found->second;
}

}  // namespace

int World::AddActor(const ActorId& id, int process, std::int64_t handling_ns, Handler handler) {
  const int actor = static_cast<int>(members_.size());
  members_.push_back({std::move(handler), handling_ns});
  trace_.actors.push_back(MakeTraceActor(id, process));
  by_name_[ToString(id)] = actor;
  return actor;
}

int World::TypeOf(const std::string& type) {
  const auto [at, fresh] = types_.try_emplace(type, static_cast<int>(types_.size()));
  if (fresh) trace_.types.push_back(type);
  return at->second;
}

void World::Send(int to, Letter letter) { leaving_.push_back({to, std::move(letter), false}); }
void World::Lose(int to, Letter letter) { leaving_.push_back({to, std::move(letter), true}); }

void World::Work(const PassRecord& pass, std::int64_t takes_ns) {
  takes_ns_ = takes_ns;
  done_.push_back(pass);
}

void World::Post(int to, const Letter& letter, int sender, std::int64_t at_ns, int cause,
                 bool lost) {
  const int message = static_cast<int>(trace_.messages.size());
  TraceMessage m;
  m.id = static_cast<std::uint64_t>(message) + 1000;
  m.cause = cause;
  m.type = TypeOf(letter.type);
  m.sender = sender;
  m.receiver = to;
  m.sent_ns = at_ns;
  const bool near =
      sender < 0 || trace_.actors[Index(sender)].process == trace_.actors[Index(to)].process;
  m.arrived_ns = at_ns + (near ? near_ns_ : far_ns_);
  m.round = letter.round;
  m.unit = letter.unit;
  m.bytes = letter.bytes;
  m.link = letter.link;
  m.credits = letter.credits;
  m.step = letter.step;
  m.role = RoleOf(letter.type);
  trace_.messages.push_back(m);
  letters_.push_back(letter);
  letters_.back().from = sender;
  if (!lost) under_way_.push({m.arrived_ns, message});
}

void World::Handle(int message) {
  TraceMessage& m = trace_.messages[Index(message)];
  Member& member = members_[Index(m.receiver)];
  if (member.stuck) return;
  m.begin_ns = std::max(m.arrived_ns, member.free_ns);
  current_ = m.receiver;
  current_message_ = message;
  takes_ns_ = member.handling_ns;
  hangs_ = false;
  const Letter letter = letters_[Index(message)];
  member.handler(letter);
  TraceMessage& again = trace_.messages[Index(message)];
  const std::int64_t end_ns = again.begin_ns + takes_ns_;
  if (hangs_) {
    member.stuck = true;
    leaving_.clear();
    done_.clear();
    return;
  }
  again.end_ns = end_ns;
  member.free_ns = end_ns;
  for (PassRecord& pass : done_) {
    pass.begin_ns = again.begin_ns;
    pass.end_ns = end_ns;
    // Every pass of a process finds one page more in use.
    const int process = trace_.actors[Index(again.receiver)].process;
    const WorkMemory memory{(process + 1) * 1'000'000 + 4096 * ++worked_[process]};
    trace_.work.push_back({pass, message, memory, {}});
  }
  done_.clear();
  for (const Leaving& leaving : std::exchange(leaving_, {})) {
    Post(leaving.to, leaving.letter, current_, end_ns, message, leaving.lost);
  }
}

void World::Run(int to, Letter letter) {
  Post(to, letter, -1, 0, -1, false);
  while (!under_way_.empty()) {
    const int message = under_way_.top().message;
    under_way_.pop();
    Handle(message);
  }
}

RunTrace World::Take() {
  std::vector<int> order(trace_.messages.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return trace_.messages[Index(a)].sent_ns < trace_.messages[Index(b)].sent_ns;
  });
  std::vector<int> place(order.size());
  std::vector<TraceMessage> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[Index(order[i])] = static_cast<int>(i);
    sorted.push_back(trace_.messages[Index(order[i])]);
  }
  for (TraceMessage& m : sorted) {
    if (m.cause >= 0) m.cause = place[Index(m.cause)];
  }
  for (TraceWork& work : trace_.work) work.message = place[Index(work.message)];
  std::stable_sort(
      trace_.work.begin(), trace_.work.end(),
      [](const TraceWork& a, const TraceWork& b) { return a.pass.begin_ns < b.pass.begin_ns; });
  trace_.messages = std::move(sorted);
  return std::move(trace_);
}

}  // namespace troupe::generated
