// An event file of TensorBoard: one record per event, of scalars by name at a step.
//   source   tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "files/output_file.hpp"

namespace troupe {

struct Scalar {
  std::string tag;  ///< "learning_rate/vision": TensorBoard groups charts by the first part
  double value = 0.0;
  friend bool operator==(const Scalar&, const Scalar&) = default;
};

/// Returns the first record of a file, which states the version of its format.
std::string VersionRecord(double wall_s);
/// Returns the record after which TensorBoard drops the events of earlier files from `step` on.
std::string RestartRecord(double wall_s, std::int64_t step);
/// Returns the record of scalars at a step. TensorBoard keeps them in single precision.
std::string ScalarsRecord(double wall_s, std::int64_t step, const std::vector<Scalar>& scalars);

/// The events of one start of a run. Makes its file with the first event: a start that trains no
/// step leaves none.
class EventFile {
 public:
  /// `folder` is made if it is missing. `resumed_after`: steps before this start, 0 for a new run.
  EventFile(std::string folder, std::int64_t resumed_after);

  /// Throws FileError.
  void Write(std::int64_t step, const std::vector<Scalar>& scalars);

 private:
  void Open(double wall_s);
  void Append(const std::string& record);

  std::string folder_;
  std::int64_t resumed_after_;
  std::optional<OutputFile> file_;
};

}  // namespace troupe
