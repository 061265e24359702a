// Moves rows between the ranks of one group: carries the route of a colocated boundary.
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

/// One exchange of a group; the same plan on all members.
struct ExchangePlan {
  std::vector<RowMove> moves;          ///< ordered by destination, then by row there
  std::vector<std::int64_t> rows_out;  ///< rows each member has afterwards
  Shape row_shape;                     ///< of one row, without the outermost dimension
  DType dtype = DType::kFloat32;

  /// No row leaves its rank, so no member waits for another.
  bool local() const;
};

/// Returns this member's rows after the exchange, in `memory`. Rows that stay are views if there
/// are no others (see ConcatenateRows); otherwise all are copied once on each side. Collective over
/// `group` unless plan.local(). Throws Aborted, std::invalid_argument (a part of the wrong shape or
/// dtype).
Buffer ExchangeRows(Communicator& group, const ExchangePlan& plan, const std::vector<Buffer>& rows,
                    RowMemory& memory);

}  // namespace troupe
