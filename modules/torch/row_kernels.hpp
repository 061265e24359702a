// Plain loops over the rows of attention, for which the library has no fused kernel. T is float or
// double; all pointers are to contiguous memory unless a width says otherwise.
#pragma once

#include <cstdint>

namespace troupe {

/// Some neighbouring heads inside the rows of a matrix [sequences * length, row_width].
struct HeadColumns {
  std::int64_t sequences = 0;
  std::int64_t length = 0;
  std::int64_t row_width = 0;
  std::int64_t first_column = 0;
  std::int64_t heads = 0;
  std::int64_t shared = 1;  ///< divides heads: so many neighbours stay side by side
  std::int64_t head_dim = 0;
};

/// The rotation of a rotary embedding: [length, head_dim / 2] each, or null for none. A head's
/// first half turns against its second half.
template <class T>
struct Rotation {
  const T* cosine = nullptr;
  const T* sine = nullptr;
};

/// heads [heads / shared, sequences, length, shared, head_dim] = scale * the rotated columns of `rows`.
template <class T>
void GatherHeads(const T* rows, const HeadColumns& columns, const Rotation<T>& rotation, T scale,
                 T* heads);

/// The transpose of GatherHeads: the columns of `rows` = scale * the heads turned back.
template <class T>
void ScatterHeads(const T* heads, const HeadColumns& columns, const Rotation<T>& rotation, T scale,
                  T* rows);

}  // namespace troupe
