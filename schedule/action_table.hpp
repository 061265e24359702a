// Schedules as tables of actions, in the grammar of the CSV files of PyTorch's pipelining
// (torch.distributed.pipelining.schedules): one row per rank, one cell per time slot.
//
//   0F3   forward of microbatch 3 on stage 0            0B3   backward, inputs and weights
//   0I3   the inputs' part of a backward                0W3   the weights' part
//   0SEND_F3 0RECV_F3 0SEND_B3 0RECV_B3                 what crosses to another rank
//   0UNSHARD 0RESHARD 0REDUCE_GRAD                      of a stage as a whole
//   (0F1;1B0)OVERLAP_F_B                                several in one slot
//   (blank)                                             a bubble
//
// Ours besides: lines that begin with # are comments; "# stage 0 = vision.s0" names a stage, and
// "# links 0>2 1>2" says which stages feed which where they are not one chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

enum class ActionKind : std::uint8_t {
  kForward,
  kBackward,  ///< both parts
  kInput,
  kWeight,
  kSendForward,
  kReceiveForward,
  kSendBackward,
  kReceiveBackward,
  kUnshard,
  kReshard,
  kReduceGradients,
};

/// "F", "B", "SEND_F", "REDUCE_GRAD".
const char* ToString(ActionKind kind);
/// Forward, backward or a part of one.
bool Computes(ActionKind kind);

struct Action {
  ActionKind kind = ActionKind::kForward;
  int stage = 0;
  std::int64_t unit = -1;  ///< microbatch; -1: of the stage as a whole
  int column = 0;          ///< cell of its row, from 0, blanks counted
  friend bool operator==(const Action&, const Action&) = default;
};
std::string ToString(const Action& action);  ///< "3SEND_F5"

struct ActionTable {
  std::vector<std::vector<Action>> rows;   ///< by rank
  std::map<int, std::string> names;        ///< by stage, where the file says
  std::vector<std::pair<int, int>> links;  ///< from, to; empty: each stage feeds the next

  /// "stage 3", or "language.s1" where it has a name.
  std::string NameOf(int stage) const;
  /// What the names have before their last dot, by the alphabet: "language", "vision".
  std::vector<std::string> NamedModules() const;
};

/// Stages, microbatches and ranks beyond these are refused: files come from outside.
inline constexpr int kMaxStage = 65'535;
inline constexpr std::int64_t kMaxUnit = 1'000'000;

/// Throws std::invalid_argument: "row 2 column 14: expected ..., got ...". Rows and columns count
/// from 0: a row is a rank.
ActionTable ParseActionTable(std::string_view text);

/// What ParseActionTable reads: the names and links as comments, then a line per row.
std::string ToCsv(const ActionTable& table);

}  // namespace troupe
