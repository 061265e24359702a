#include "cluster/environment.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// A pair of variables with the meaning "I of N".
struct PairSource {
  std::string index;
  std::string count;
  std::string name() const { return index + "/" + count; }
};

/// The place that one source gives.
struct PlaceClaim {
  std::string source;   ///< "--node", "PMI_RANK/PMI_SIZE"
  bool plural = false;  ///< "say" instead of "says"
  int index = 0;
  int count = 1;
  std::string Text() const {
    return source + (plural ? " say " : " says ") + std::to_string(index) + "/" +
           std::to_string(count);
  }
};

}  // namespace

static const PairSource kSlurm{"SLURM_PROCID", "SLURM_NTASKS"};
static const PairSource kOpenMpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
static const PairSource kPmi{"PMI_RANK", "PMI_SIZE"};
static const PairSource kTorchNodes{"GROUP_RANK", "GROUP_WORLD_SIZE"};
static const PairSource kTorchWorkers{"RANK", "WORLD_SIZE"};
static const PairSource kKubernetes{"JOB_COMPLETION_INDEX", "TROUPE_NUM_NODES"};

/// A number >= 0 written in digits only, or nothing.
static std::optional<int> NumberOf(std::string_view text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const bool whole = !text.empty() && error == std::errc() && rest == end && text.front() != '-';
  return whole ? std::optional(number) : std::nullopt;
}

static PlaceClaim Checked(PlaceClaim claim) {
  if (claim.count >= 1 && claim.index < claim.count) return claim;
  throw LaunchError(claim.Text() + ", expected " +
                    (claim.count < 1 ? "at least 1 process"
                                     : "a number from 0 to " + std::to_string(claim.count - 1)));
}

/// Parses "1/4", the format of --node and TROUPE_NODE.
static PlaceClaim ParseClaim(const std::string& source, const std::string& text) {
  const auto slash = std::min(text.find('/'), text.size());
  const auto index = NumberOf(std::string_view(text).substr(0, slash));
  const auto count = NumberOf(std::string_view(text).substr(std::min(slash + 1, text.size())));
  if (!index || !count) {
    throw LaunchError(source + ": expected I/N, such as 0/4 for the first of four, got \"" + text +
                      "\"");
  }
  return Checked({source, false, *index, *count});
}

static int NumberIn(const std::string& name, const std::string& text) {
  const auto number = NumberOf(text);
  if (!number) throw LaunchError(name + ": expected a whole number, got \"" + text + "\"");
  return *number;
}

static std::optional<PlaceClaim> ReadPair(const Variables& variables, const PairSource& pair) {
  const std::string* const index = FindVariable(variables, pair.index);
  const std::string* const count = FindVariable(variables, pair.count);
  if (index == nullptr && count == nullptr) return {};
  if (index == nullptr) throw HalfSet(pair.count, *count, pair.index);
  if (count == nullptr) throw HalfSet(pair.index, *index, pair.count);
  return Checked({pair.name(), true, NumberIn(pair.index, *index), NumberIn(pair.count, *count)});
}

/// torchrun sets both pairs. They are equal unless it starts several workers per node: then
/// GROUP_RANK is the same for all of these, and RANK differs.
static void ReadTorch(const Variables& variables, std::vector<PlaceClaim>& claims) {
  const auto workers = ReadPair(variables, kTorchWorkers);
  const auto nodes = ReadPair(variables, kTorchNodes);
  const bool one_each = !workers || !nodes || workers->count == nodes->count;
  if (nodes && one_each) claims.push_back(*nodes);
  if (workers) claims.push_back(*workers);
}

static std::vector<PlaceClaim> ReadClaims(const Variables& variables,
                                          const std::optional<std::string>& node_argument) {
  std::vector<PlaceClaim> claims;
  const auto add = [&](const PairSource& pair) {
    if (auto claim = ReadPair(variables, pair)) claims.push_back(std::move(*claim));
  };
  if (node_argument) claims.push_back(ParseClaim("--node", *node_argument));
  if (const auto* text = FindVariable(variables, "TROUPE_NODE")) {
    claims.push_back(ParseClaim("TROUPE_NODE", *text));
  }
  if (FindVariable(variables, "SLURM_STEP_ID") != nullptr) add(kSlurm);
  add(kOpenMpi);
  add(kPmi);
  ReadTorch(variables, claims);
  add(kKubernetes);
  return claims;
}

static std::string PlannedText(const ProcessPlan& plan) {
  const int processes = plan.num_processes();
  std::string text = "the configuration plans " + std::to_string(processes) +
                     (processes == 1 ? " process" : " processes");
  if (plan.num_nodes() != processes) text += " on " + std::to_string(plan.num_nodes()) + " nodes";
  return text + " (" + plan.Names() + ")";
}

static NodeChoice NoSource(const ProcessPlan& plan) {
  if (plan.num_processes() == 1) return {0, 1, "the plan", LaunchedPer::kProcess};
  throw NoNodeSource(PlannedText(plan) + ", but the number of this one is not given; expected " +
                     "--node I/N, TROUPE_NODE=I/N, or a launcher's " + kSlurm.name() +
                     " (in a step), " + kOpenMpi.name() + ", " + kPmi.name() + ", " +
                     kTorchNodes.name() + ", " + kTorchWorkers.name() + " or " +
                     kKubernetes.name());
}

NodeChoice ChooseNode(const Variables& variables, const std::optional<std::string>& node_argument,
                      const ProcessPlan& plan) {
  const std::vector<PlaceClaim> claims = ReadClaims(variables, node_argument);
  if (claims.empty()) return NoSource(plan);
  const PlaceClaim& first = claims.front();
  for (const auto& other : claims) {
    if (other.index == first.index && other.count == first.count) continue;
    throw LaunchError(first.Text() + ", " + other.Text());
  }
  NodeChoice choice{first.index, first.count, first.source, LaunchedPer::kProcess};
  if (first.count == plan.num_processes()) return choice;
  if (first.count != plan.num_nodes()) {
    throw LaunchError(first.Text() + ", " + PlannedText(plan));
  }
  choice.launched_per = LaunchedPer::kNode;
  return choice;
}

std::optional<std::string> TaskOfMany(const Variables& variables) {
  try {
    for (const PlaceClaim& claim : ReadClaims(variables, std::nullopt)) {
      if (claim.count > 1) return claim.Text();
    }
  } catch (const LaunchError&) {
  }
  return std::nullopt;
}

}  // namespace troupe
