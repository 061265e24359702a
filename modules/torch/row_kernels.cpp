#include "modules/torch/row_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe {
namespace {

/// Sum over i of f(i), in eight interleaved lanes that the compiler can keep in vector registers:
/// it must not reorder a plain sum of floats by itself.
template <class T, class F>
T SumLanes(std::int64_t count, F f) {
  constexpr std::int64_t kLanes = 8;
  T lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(i + lane);
  }
  for (std::int64_t lane = 0; i < count; ++i, ++lane) lanes[lane] += f(i);
  T sum = 0;
  for (const T lane : lanes) sum += lane;
  return sum;
}

/// Calls `visit(offset in rows, offset in heads, t)` for every head vector.
template <class Visit>
void ForEachHead(const HeadColumns& c, Visit visit) {
  for (std::int64_t n = 0; n < c.sequences; ++n) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      for (std::int64_t t = 0; t < c.length; ++t) {
        visit((n * c.length + t) * c.row_width + c.first_column + h * c.head_dim,
              ((n * c.heads + h) * c.length + t) * c.head_dim, t);
      }
    }
  }
}

/// to = scale * from turned by the angles; `direction` -1 turns back.
template <class T>
void Rotate(const T* from, const T* cosine, const T* sine, std::int64_t half, T direction, T scale,
            T* to) {
  for (std::int64_t i = 0; i < half; ++i) {
    const T c = cosine[i] * scale;
    const T s = sine[i] * direction * scale;
    to[i] = from[i] * c - from[i + half] * s;
    to[i + half] = from[i + half] * c + from[i] * s;
  }
}

template <class T>
void TurnOrCopy(const T* from, const HeadColumns& columns, const Rotation<T>& rotation,
                std::int64_t t, T direction, T scale, T* to) {
  const std::int64_t half = columns.head_dim / 2;
  if (rotation.cosine) {
    Rotate(from, rotation.cosine + t * half, rotation.sine + t * half, half, direction, scale, to);
  } else {
    for (std::int64_t i = 0; i < columns.head_dim; ++i) to[i] = from[i] * scale;
  }
}

}  // namespace

template <class T>
void RmsNormRows(const T* x, const T* weight, std::int64_t num_rows, std::int64_t hidden,
                 double epsilon, T* y, T* rstd) {
  for (std::int64_t m = 0; m < num_rows; ++m, x += hidden, y += hidden) {
    const T squares = SumLanes<T>(hidden, [x](std::int64_t i) { return x[i] * x[i]; });
    const T r = T(1) / std::sqrt(squares / static_cast<T>(hidden) + static_cast<T>(epsilon));
    rstd[m] = r;
    for (std::int64_t i = 0; i < hidden; ++i) y[i] = x[i] * r * weight[i];
  }
}

template <class T>
void RmsNormGradient(const T* y_gradient, const T* x, const T* weight, const T* rstd,
                     std::int64_t num_rows, std::int64_t hidden, T* x_gradient,
                     T* weight_gradient) {
  for (std::int64_t m = 0; m < num_rows; ++m) {
    const T r = rstd[m];
    const T dot =
        SumLanes<T>(hidden, [=](std::int64_t i) { return y_gradient[i] * weight[i] * x[i]; });
    const T pull = dot * r * r / static_cast<T>(hidden);
    for (std::int64_t i = 0; i < hidden; ++i) {
      x_gradient[i] = r * (y_gradient[i] * weight[i] - x[i] * pull);
    }
    if (weight_gradient) {
      for (std::int64_t i = 0; i < hidden; ++i) weight_gradient[i] += y_gradient[i] * x[i] * r;
    }
    y_gradient += hidden;
    x += hidden;
    x_gradient += hidden;
  }
}

template <class T>
void GatherHeads(const T* rows, const HeadColumns& columns, const Rotation<T>& rotation, T scale,
                 T* heads) {
  ForEachHead(columns, [&](std::int64_t row_offset, std::int64_t head_offset, std::int64_t t) {
    TurnOrCopy(rows + row_offset, columns, rotation, t, T(1), scale, heads + head_offset);
  });
}

template <class T>
void ScatterHeads(const T* heads, const HeadColumns& columns, const Rotation<T>& rotation, T scale,
                  T* rows) {
  ForEachHead(columns, [&](std::int64_t row_offset, std::int64_t head_offset, std::int64_t t) {
    TurnOrCopy(heads + head_offset, columns, rotation, t, T(-1), scale, rows + row_offset);
  });
}

template <class T>
void LookUpRows(const T* table, std::int64_t first_id, std::int64_t num_ids,
                const std::int64_t* ids, std::int64_t num_rows, std::int64_t hidden, T* y) {
  for (std::int64_t m = 0; m < num_rows; ++m, y += hidden) {
    const std::int64_t id = ids[m] - first_id;
    if (id >= 0 && id < num_ids) {
      std::copy_n(table + id * hidden, hidden, y);
    } else {
      std::fill_n(y, hidden, T(0));
    }
  }
}

template <class T>
void AddLookedUpRows(const T* y_gradient, std::int64_t first_id, std::int64_t num_ids,
                     const std::int64_t* ids, std::int64_t num_rows, std::int64_t hidden,
                     T* table_gradient) {
  for (std::int64_t m = 0; m < num_rows; ++m, y_gradient += hidden) {
    const std::int64_t id = ids[m] - first_id;
    if (id < 0 || id >= num_ids) continue;
    T* const row = table_gradient + id * hidden;
    for (std::int64_t i = 0; i < hidden; ++i) row[i] += y_gradient[i];
  }
}

template <class T>
double SumOfSquares(const T* x, std::int64_t count) {
  return SumLanes<double>(count, [x](std::int64_t i) {
    const auto value = static_cast<double>(x[i]);
    return value * value;
  });
}

template <class T>
void RowMaxima(const T* x, std::int64_t num_rows, std::int64_t width, T* values,
               std::int64_t* places) {
  for (std::int64_t m = 0; m < num_rows; ++m, x += width) {
    values[m] = -std::numeric_limits<T>::infinity();
    places[m] = 0;
    for (std::int64_t v = 0; v < width; ++v) {
      if (x[v] > values[m]) {
        values[m] = x[v];
        places[m] = v;
      }
    }
  }
}

#define TROUPE_FOR_TYPE(T)                                                                   \
  template void RmsNormRows(const T*, const T*, std::int64_t, std::int64_t, double, T*, T*); \
  template void RmsNormGradient(const T*, const T*, const T*, const T*, std::int64_t,        \
                                std::int64_t, T*, T*);                                       \
  template void GatherHeads(const T*, const HeadColumns&, const Rotation<T>&, T, T*);        \
  template void ScatterHeads(const T*, const HeadColumns&, const Rotation<T>&, T, T*);       \
  template void LookUpRows(const T*, std::int64_t, std::int64_t, const std::int64_t*,        \
                           std::int64_t, std::int64_t, T*);                                  \
  template void AddLookedUpRows(const T*, std::int64_t, std::int64_t, const std::int64_t*,   \
                                std::int64_t, std::int64_t, T*);                             \
  template double SumOfSquares(const T*, std::int64_t);                                      \
  template void RowMaxima(const T*, std::int64_t, std::int64_t, T*, std::int64_t*);
TROUPE_FOR_TYPE(float)
TROUPE_FOR_TYPE(double)
#undef TROUPE_FOR_TYPE

}  // namespace troupe
