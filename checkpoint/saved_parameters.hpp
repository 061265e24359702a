// The parameters that a run has saved: as shards of a checkpoint, or whole in one file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "checkpoint/saved_state.hpp"

namespace troupe {

inline constexpr const char* kWeightsFile = "weights.safetensors";

/// Returns the newest parameters that `path` has: itself if it is a checkpoint or such a file, else
/// RUN/weights.safetensors or the run's newest checkpoint. Calls `skipped` as NewestCheckpoint does.
/// Throws std::runtime_error, one line, if there are none.
std::string NewestParameters(
    const std::string& path,
    const std::function<void(const std::string& line)>& skipped = [](const std::string&) {});

/// Opens every file first, so that a run may remove the checkpoint meanwhile.
class SavedParameters {
 public:
  /// Of a checkpoint's folder, RUN/checkpoints/step-00000120. Throws std::runtime_error, one line
  /// that names the file: no manifest, a file that is missing or damaged, pieces that do not cover
  /// a tensor. Does not check the SHA-256 of the files.
  static SavedParameters OfCheckpoint(const std::string& folder);
  /// Of RUN/weights.safetensors.
  static SavedParameters OfFile(const std::string& file);

  /// Of NewestParameters(path).
  static SavedParameters OfPath(const std::string& path);

  bool Has(const std::string& name) const { return shapes_.contains(name); }
  /// Throws std::out_of_range for an unknown name.
  const Shape& ShapeOf(const std::string& name) const { return shapes_.at(name); }
  /// Returns a whole tensor in the type that it is kept in. Throws std::runtime_error if a file
  /// cannot be read.
  Buffer Read(const std::string& name) const;
  /// The same of a part. Reads no other bytes of the files.
  Buffer ReadPart(const std::string& name, const std::vector<std::int64_t>& offsets,
                  const Shape& shape) const;
  /// Reads a tensor in bands of rows of about `num_elements` and passes each to `take`, in the type
  /// that it is kept in. Throws like Read.
  void ReadInBands(const std::string& name, const std::function<void(const Buffer& rows)>& take,
                   std::int64_t num_elements = std::int64_t{1} << 21) const;
  /// Optimizer steps that led to them.
  std::int64_t steps() const { return steps_; }

 private:
  std::shared_ptr<SavedState> state_;              ///< null: `file_` has them
  std::shared_ptr<const SafetensorsReader> file_;  ///< null: `state_` has them
  std::map<std::string, Shape> shapes_;
  std::int64_t steps_ = 0;
};

}  // namespace troupe
