// Places rows into a tensor, or selects rows of one. On a GPU the kernels of gpu/kernels/device.hpp
// move them, elsewhere their plain loops.
#pragma once

#include <string>
#include <torch/types.h>

namespace troupe {

/// `text` [M, H] with `rows` [n, H] at `positions` [n], in place: `text` has no other reader and is
/// not a leaf. All are of one device, rows and text of one type, positions int64 in [0, M), none
/// twice. The rows that were there get no gradient.
at::Tensor PlaceRows(at::Tensor text, const at::Tensor& rows, const at::Tensor& positions);

/// [n, H]: rows `positions` [n] of x [M, H], on the same terms. All others get zeros for gradients.
at::Tensor SelectRows(const at::Tensor& x, const at::Tensor& positions);

/// Where the rows of an encoder go among M rows of text. Both in host memory.
struct RowPlaces {
  at::Tensor rows;      ///< [n] int64; -1: left out
  at::Tensor newlines;  ///< [m] int64, or undefined: of the newline row
};

/// PlaceRows for `rows` [n, H] of `encoder`, and for copies of its `newline` [H], which is undefined if
/// it has none. Throws std::invalid_argument, which `who` begins, for places that do not fit.
at::Tensor PlaceEncoderRows(at::Tensor text, const at::Tensor& rows, const at::Tensor& newline,
                            const RowPlaces& places, const std::string& who,
                            const std::string& encoder);

}  // namespace troupe
