#include "modules/torch/cuda/row_moves.hpp"

#ifdef TROUPE_TORCH_CUDA
#include "gpu/kernels/device.hpp"
#include "modules/torch/cuda/current_stream.hpp"

namespace troupe {

void GatherRowsOnDevice(const at::Tensor& whole, const at::Tensor& index, const at::Tensor& rows) {
  gpu::GatherRows(StreamOf(rows), BytesOf(whole), index.data_ptr<std::int64_t>(), rows.size(0),
                  RowBytes(rows), BytesOf(rows));
}

void ScatterRowsOnDevice(const at::Tensor& rows, const at::Tensor& index, const at::Tensor& whole) {
  gpu::ScatterRows(StreamOf(rows), BytesOf(rows), index.data_ptr<std::int64_t>(), rows.size(0),
                   RowBytes(rows), BytesOf(whole));
}

void TakeRowsOnDevice(const at::Tensor& whole, const at::Tensor& index, const at::Tensor& rows) {
  gpu::TakeRows(StreamOf(rows), BytesOf(whole), index.data_ptr<std::int64_t>(), rows.size(0),
                RowBytes(rows), BytesOf(rows));
}

}  // namespace troupe

#else
#include <stdexcept>

namespace troupe {
namespace {

[[noreturn]] void RefuseToMove() {
  throw std::logic_error("moving rows: this build's libtorch knows no CUDA devices");
}

}  // namespace

void GatherRowsOnDevice(const at::Tensor&, const at::Tensor&, const at::Tensor&) { RefuseToMove(); }
void ScatterRowsOnDevice(const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  RefuseToMove();
}
void TakeRowsOnDevice(const at::Tensor&, const at::Tensor&, const at::Tensor&) { RefuseToMove(); }

}  // namespace troupe
#endif
