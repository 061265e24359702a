// Plain loops over rows, for what the library has no fused kernel for. T is float or double; all
// pointers are to contiguous memory unless a width says otherwise.
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
  std::int64_t head_dim = 0;
};

/// The rotation of a rotary embedding: [length, head_dim / 2] each, or null for none. A head's
/// first half turns against its second half.
template <class T>
struct Rotation {
  const T* cosine = nullptr;
  const T* sine = nullptr;
};

/// heads [sequences, heads, length, head_dim] = scale * the rotated columns of `rows`.
template <class T>
void GatherHeads(const T* rows, const HeadColumns& columns, const Rotation<T>& rotation, T scale,
                 T* heads);

/// The transpose of GatherHeads: the columns of `rows` = scale * the heads turned back.
template <class T>
void ScatterHeads(const T* heads, const HeadColumns& columns, const Rotation<T>& rotation, T scale,
                  T* rows);

/// y [M, H]: row ids[m] - first_id of `table` [num_ids, H], or zeros where that is not in it.
template <class T>
void LookUpRows(const T* table, std::int64_t first_id, std::int64_t num_ids,
                const std::int64_t* ids, std::int64_t num_rows, std::int64_t hidden, T* y);

/// Adds row m of y_gradient to the row of `table_gradient` that it was looked up from.
template <class T>
void AddLookedUpRows(const T* y_gradient, std::int64_t first_id, std::int64_t num_ids,
                     const std::int64_t* ids, std::int64_t num_rows, std::int64_t hidden,
                     T* table_gradient);

/// Sum of x^2 over [count], in double.
template <class T>
double SumOfSquares(const T* x, std::int64_t count);

/// Largest value of each row of x [M, V] and the first place where it stands.
template <class T>
void RowMaxima(const T* x, std::int64_t num_rows, std::int64_t width, T* values,
               std::int64_t* places);

}  // namespace troupe
