// The tensors of a Hugging Face folder, read slice by slice.
//
//   DIR/model.safetensors                one file, or
//   DIR/model.safetensors.index.json     {"weight_map": {"TENSOR": "FILE", ...}} and the files, or
//   DIR/pytorch_model.bin                one file of torch.save, or
//   DIR/pytorch_model.bin.index.json     such an index, and the files
//
// The first of these that is there counts, as in transformers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/tensor_file.hpp"
#include "configs/config.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

/// Files are mapped, so that a slice along any dimension costs no call per row and processes of a
/// machine share what was read from its disk. Used on one thread.
class WeightsFolder {
 public:
  /// Reads the headers of all files. Throws std::runtime_error, one line that names the file: no
  /// weights, a name that is not plain, a file that is missing or damaged, a tensor in two files or
  /// in another file than the index says.
  explicit WeightsFolder(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const std::vector<std::unique_ptr<const TensorFile>>& files() const { return files_; }
  bool Has(const std::string& name) const { return places_.contains(name); }
  /// Throws std::runtime_error naming file and tensor unless `name` is there, has `shape` and holds
  /// numbers with a fraction. `whose` is our name of it. `may_grow`: it may have fewer rows.
  void Require(const std::string& name, const Shape& shape, const std::string& whose,
               bool may_grow = false) const;
  /// Fills the value of `piece`, of a floating type, with its part of tensor `name`. Rows that the
  /// tensor does not have are the mean of those it has, if it `may_grow`. Throws as Require does for
  /// the whole of `piece`, and if the file has shrunk.
  void Read(const std::string& name, const TensorPiece& piece, bool may_grow = false) const;
  /// Bytes that Read has taken from files.
  std::uint64_t num_bytes_read() const { return num_bytes_read_; }

 private:
  struct Place {
    const TensorFile* file = nullptr;
    const TensorEntry* entry = nullptr;
  };

  /// Reads the header of a file.
  using ReadFile = TensorFile (*)(const std::string& path);

  void Open(const std::string& name, ReadFile read);
  void OpenIndexed(const std::string& index, ReadFile read);

  std::string folder_;
  std::vector<std::unique_ptr<const TensorFile>> files_;
  std::map<std::string, Place> places_;
  mutable std::uint64_t num_bytes_read_ = 0;
};

/// Opens the folders from which modules start, and looks for every tensor of theirs. Reads headers
/// only. Throws ModelFolderError for the first fault that ReadWeights would find.
void CheckWeights(const Config& config);

/// Returns the newline rows that start from random values although their projector starts from a
/// folder, by name. Throws like WeightsFolder.
std::vector<std::string> RandomNewlines(const Config& config);

/// Fills the values of those `pieces` whose module starts from a folder or a run. Throws like WeightsFolder,
/// and for a folder in which no tensors of the module's kind are found.
void ReadWeights(const Config& config, const std::vector<TensorPiece>& pieces);

/// Returns a digest for each module that starts from a folder, one "key = value" a line: of the
/// names, types, shapes and places of all tensors, and of the first and last bytes of each file.
/// A folder that cannot be used has no line: CheckWeights reports it.
std::string WeightsDigests(const Config& config);

/// Whether any module starts from a folder or a run.
bool ReadsWeights(const Config& config);

}  // namespace troupe
