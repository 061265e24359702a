#include "modules/torch/row_kernels.hpp"

namespace troupe {
namespace {

/// Calls `visit(offset in rows, offset in heads, t)` for every head vector.
template <class Visit>
void ForEachHead(const HeadColumns& c, Visit visit) {
  const std::int64_t rows = c.sequences * c.length;
  for (std::int64_t group = 0; group < c.heads / c.shared; ++group) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t j = 0; j < c.shared; ++j) {
        visit(row * c.row_width + c.first_column + (group * c.shared + j) * c.head_dim,
              ((group * rows + row) * c.shared + j) * c.head_dim, row % c.length);
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

#define TROUPE_FOR_TYPE(T)                                                            \
  template void GatherHeads(const T*, const HeadColumns&, const Rotation<T>&, T, T*); \
  template void ScatterHeads(const T*, const HeadColumns&, const Rotation<T>&, T, T*);
TROUPE_FOR_TYPE(float)
TROUPE_FOR_TYPE(double)
#undef TROUPE_FOR_TYPE

}  // namespace troupe
