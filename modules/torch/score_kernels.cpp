#include "modules/torch/score_kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "layout/every_cpu.hpp"

namespace troupe {
namespace {

/// e^x for x <= 0. Below its bound glibc's vector function takes numbers one by one. Where x is not
/// a number, the bound may come out.
template <class T>
TROUPE_INLINED T Exponential(T x) {
  constexpr T kLeast = sizeof(T) == sizeof(float) ? T(-80) : T(-700);
  return std::exp(x < kLeast ? kLeast : x);
}

/// The flags of this file let the compiler assume that every number is finite, so only bits tell.
template <class T>
TROUPE_INLINED bool IsFinite(T x) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(float), std::uint32_t, std::uint64_t>;
  constexpr Bits kExponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  return (std::bit_cast<Bits>(x) & kExponent) != kExponent;
}

/// Calls `visit(batch, row, its scores, how many of them it sees)`.
template <class T, class Visit>
TROUPE_INLINED void ForEachRow(const ScoreBlock& block, T* scores, Visit visit) {
  for (std::int64_t n = 0; n < block.batches; ++n) {
    for (std::int64_t r = 0; r < block.rows; ++r, scores += block.keys) {
      std::int64_t seen = block.keys;
      if (block.shared != 0) {
        const std::int64_t last = (block.first_row + r) / block.shared - block.first_key;
        seen = std::clamp<std::int64_t>(last + 1, 0, block.keys);
      }
      visit(n, r, scores, seen);
    }
  }
}

template <class T>
TROUPE_INLINED void Exponentiate(const ScoreBlock& block, T* scores, RowState<T> maxima,
                                 RowState<T> sums, RowState<T> out, std::int64_t width) {
  ForEachRow(block, scores,
             [=](std::int64_t n, std::int64_t r, T* row, std::int64_t seen) TROUPE_INLINED_LAMBDA {
               T& maximum = maxima.of_first_row[n * maxima.stride + r];
               T& sum = sums.of_first_row[n * sums.stride + r];
               T largest = maximum;
               T total = 0;
               for (std::int64_t j = 0; j < seen; ++j) {
                 largest = row[j] > largest ? row[j] : largest;
                 total += row[j];
               }
               // What is not finite makes the whole row so.
               T added = IsFinite(total) ? T(0) : std::numeric_limits<T>::quiet_NaN();
               for (std::int64_t j = 0; j < seen; ++j) {
                 row[j] = Exponential(row[j] - largest);
                 added += row[j];
               }
               std::fill(row + seen, row + block.keys, T(0));
               if (largest > maximum) {
                 const T shrink = Exponential(maximum - largest);
                 T* const values = out.of_first_row + n * out.stride + r * width;
                 for (std::int64_t i = 0; i < width; ++i) values[i] *= shrink;
                 sum *= shrink;
               }
               sum += added;
               maximum = largest;
             });
}

template <class T>
TROUPE_INLINED void Gradients(const ScoreBlock& block, T* scores, T* gradients,
                              RowState<T> log_sums, RowState<T> dots) {
  ForEachRow(block, scores,
             [=](std::int64_t n, std::int64_t r, T* row, std::int64_t seen) TROUPE_INLINED_LAMBDA {
               const T log_sum = log_sums.of_first_row[n * log_sums.stride + r];
               const T dot = dots.of_first_row[n * dots.stride + r];
               T* const gradient = gradients + (row - scores);
               for (std::int64_t j = 0; j < seen; ++j) {
                 row[j] = Exponential(row[j] - log_sum);
                 gradient[j] = row[j] * (gradient[j] - dot);
               }
               std::fill(row + seen, row + block.keys, T(0));
               std::fill(gradient + seen, gradient + block.keys, T(0));
             });
}

}  // namespace

#define TROUPE_FOR_TYPE(T)                                                                      \
  TROUPE_FOR_EVERY_CPU void ExponentiateScores(const ScoreBlock& block, T* scores,              \
                                               RowState<T> maxima, RowState<T> sums,            \
                                               RowState<T> out, std::int64_t width) {           \
    Exponentiate(block, scores, maxima, sums, out, width);                                      \
  }                                                                                             \
  TROUPE_FOR_EVERY_CPU void GradientsOfScores(const ScoreBlock& block, T* scores, T* gradients, \
                                              RowState<T> log_sums, RowState<T> dots) {         \
    Gradients(block, scores, gradients, log_sums, dots);                                        \
  }
TROUPE_FOR_TYPE(float)
TROUPE_FOR_TYPE(double)
#undef TROUPE_FOR_TYPE

}  // namespace troupe
