// Tensors in a file of torch.save: since PyTorch 1.6, a zip archive of
//   NAME/data.pkl    a pickle of {"TENSOR": rebuild(storage KEY, offset, shape, strides, ...), ...}
//   NAME/data/KEY    the elements of a storage
//   NAME/byteorder   "little"; not in older files
#pragma once

#include <span>
#include <string>

#include "checkpoint/tensor_file.hpp"

namespace troupe {

/// Reads the pickle of a regular file, and no tensor. Tensors may share storages. Throws
/// std::runtime_error, one line: path, expected and actual value. Refused are pickles that hold
/// anything other than contiguous tensors by name, and the format before PyTorch 1.6.
TensorFile ReadTorchFile(const std::string& path);

}  // namespace troupe
