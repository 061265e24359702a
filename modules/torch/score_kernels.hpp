// What attention does to blocks of scores between its products, in one pass over them, for which
// the library has no kernel. T is float or double.
#pragma once

#include <cstdint>

namespace troupe {

/// Scores [batches, rows, keys], contiguous, of rows and keys that begin at `first_row` and
/// `first_key`.
struct ScoreBlock {
  std::int64_t batches = 0;
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  std::int64_t first_row = 0;
  std::int64_t first_key = 0;
  std::int64_t shared = 0;  ///< row r sees keys [0, r / shared]; 0: all keys
};

/// Values of neighbouring rows, `stride` elements from one batch to the next.
template <class T>
struct RowState {
  T* of_first_row = nullptr;
  std::int64_t stride = 0;
};

/// Replaces scores by e^(score - m), m being the largest of the row's scores so far, and hidden ones
/// by 0. Per row: `maxima` becomes m; `sums` and the `width` values of `out` shrink by what m grew,
/// and `sums` takes in the new exponentials.
template <class T>
void ExponentiateScores(const ScoreBlock& block, T* scores, RowState<T> maxima, RowState<T> sums,
                        RowState<T> out, std::int64_t width);

/// Replaces scores by weights e^(score - log_sums), hidden ones by 0, and gradients of weights by
/// weight * (gradient - dots).
template <class T>
void GradientsOfScores(const ScoreBlock& block, T* scores, T* gradients, RowState<T> log_sums,
                       RowState<T> dots);

}  // namespace troupe
