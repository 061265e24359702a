// Loops over a block of scores between the products of attention. The library has no kernel that
// does as much in one pass.
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

/// Replaces scores by e^(score - m), and hidden ones by 0, where m is the largest score of the row
/// so far. For each row, `maxima` becomes m, `sums` and the `width` values of `out` are multiplied by
/// e^(old m - new m), and the new exponentials are added to `sums`.
void ExponentiateScores(const ScoreBlock& block, float* scores, RowState<float> maxima,
                        RowState<float> sums, RowState<float> out, std::int64_t width);
void ExponentiateScores(const ScoreBlock& block, double* scores, RowState<double> maxima,
                        RowState<double> sums, RowState<double> out, std::int64_t width);

/// Replaces scores by weights e^(score - log_sums), hidden ones by 0, and gradients of weights by
/// weight * (gradient - dots).
void GradientsOfScores(const ScoreBlock& block, float* scores, float* gradients,
                       RowState<float> log_sums, RowState<float> dots);
void GradientsOfScores(const ScoreBlock& block, double* scores, double* gradients,
                       RowState<double> log_sums, RowState<double> dots);

}  // namespace troupe
