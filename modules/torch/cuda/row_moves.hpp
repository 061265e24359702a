// Rows moved by our own kernels, on the stream that libtorch computes on.
#pragma once

#include <cstddef>
#include <torch/types.h>

namespace troupe {

inline std::byte* BytesOf(const at::Tensor& rows) {
  return static_cast<std::byte*>(rows.data_ptr());
}
/// Of each row of `rows` [n, H].
inline std::size_t RowBytes(const at::Tensor& rows) {
  return static_cast<std::size_t>(rows.size(1) * rows.element_size());
}

/// GatherRows, ScatterRows and TakeRows of gpu/kernels/rows.hpp for contiguous tensors of one GPU:
/// `whole` [M, H] and `rows` [n, H] of one type, `index` [n] int64. Throws std::logic_error where
/// libtorch knows no GPUs.
void GatherRowsOnDevice(const at::Tensor& whole, const at::Tensor& index, const at::Tensor& rows);
void ScatterRowsOnDevice(const at::Tensor& rows, const at::Tensor& index, const at::Tensor& whole);
void TakeRowsOnDevice(const at::Tensor& whole, const at::Tensor& index, const at::Tensor& rows);

}  // namespace troupe
