// Rows that change ranks inside one group: the colocated boundary's way of carrying a route.
#pragma once

#include <cstdint>
#include <vector>

#include "layout/route.hpp"
#include "transport/communicator.hpp"
#include "transport/row_memory.hpp"

namespace troupe {

/// Rows [source_rows) on member `source` become rows [destination_rows) on member `destination`.
struct RowMove {
  int source = 0;
  int destination = 0;
  Interval source_rows;
  Interval destination_rows;
};

/// What every member of a group does in one exchange; the same object on all of them.
struct ExchangePlan {
  std::vector<RowMove> moves;          ///< ordered by destination, then by row there
  std::vector<std::int64_t> rows_out;  ///< rows each member ends up with
  Shape row_shape;                     ///< of one row, without the outermost dimension
  DType dtype = DType::kFloat32;

  /// No row leaves its rank: then nobody waits for anybody.
  bool local() const;
};

/// The rows this member ends up with, in `memory`. Rows that stay are views where they are all
/// there is (see ConcatenateRows), the rest is copied once on each side. Collective over `group`
/// unless plan.local(). Throws Aborted, std::invalid_argument (a part of the wrong shape or dtype).
Buffer ExchangeRows(Communicator& group, const ExchangePlan& plan, const std::vector<Buffer>& rows,
                    RowMemory& memory);

}  // namespace troupe
