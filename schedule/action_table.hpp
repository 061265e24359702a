// Schedules as tables of actions, in the grammar of the CSV files of PyTorch's pipelining
// (torch.distributed.pipelining.schedules): one row per rank, one cell per time slot.
//
//   0F3   forward of microbatch 3 on stage 0            0B3   backward, inputs and weights
//   0I3   the inputs' part of a backward                0W3   the weights' part
//   0SEND_F3 0RECV_F3 0SEND_B3 0RECV_B3                 transfers to and from another rank
//   0UNSHARD 0RESHARD 0REDUCE_GRAD                      actions on a whole stage
//   (0F1;1B0)OVERLAP_F_B                                several actions in one slot
//   (blank)                                             a bubble
//
// Our extensions: lines that begin with # are comments; "# stage 0 = vision.s0" names a stage, and
// "# links 0>2 1>2" lists the links between stages that are not one chain.
#pragma once

#include <cstdint>
#include <map>
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
  std::int64_t unit = -1;  ///< microbatch; -1: the whole stage
  int column = 0;          ///< cell of its row, from 0, blanks counted
  friend bool operator==(const Action&, const Action&) = default;
};
std::string ToString(const Action& action);  ///< "3SEND_F5"

struct ActionTable {
  std::vector<std::vector<Action>> rows;   ///< by rank
  std::map<int, std::string> names;        ///< by stage, if the file names it
  std::vector<std::pair<int, int>> links;  ///< from, to; empty: each stage feeds the next

  /// The names up to their last dot, sorted: "language", "vision".
  std::vector<std::string> NamedModules() const;
};

/// Larger numbers in files are refused.
inline constexpr int kMaxStage = 65'535;
inline constexpr std::int64_t kMaxUnit = 1'000'000;

/// Throws std::invalid_argument: "row 2 column 14: expected ..., got ...". Rows and columns count
/// from 0: a row is a rank.
ActionTable ParseActionTable(std::string_view text);

/// The text that ParseActionTable reads: names and links as comments, then a line per row.
std::string ToCsv(const ActionTable& table);

}  // namespace troupe
