// The folder of indexes that jobs share. An index is whole or absent. A job waits for an index that another
// job is building, and continues one whose job was killed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "data/rows/row_index.hpp"

namespace troupe {

class IndexCache {
 public:
  /// `folder`: made if it is missing; "~" is the home folder. Removes the least recently used indexes when
  /// the folder exceeds `limit_bytes`. Throws std::runtime_error if it cannot be made.
  IndexCache(const std::string& folder, std::int64_t limit_bytes);

  /// Returns the index of a key of letters and digits. If none exists, or `is_final` rejects it, calls
  /// `build` to fill a new one, which may be partial. If `build` throws, no index remains. Calls `waits` before
  /// it waits for another job that builds it.
  std::shared_ptr<const RowIndex> Get(const std::string& key, std::size_t num_encoders,
                                      const std::function<void(RowIndex&)>& build,
                                      const std::function<bool(const RowIndex&)>& is_final = {},
                                      const std::function<void()>& waits = {}) const;

  /// Returns the index of a key; null if there is none.
  std::shared_ptr<const RowIndex> Find(const std::string& key, std::size_t num_encoders) const;
  std::string PathOf(const std::string& key) const { return folder_ + "/" + key + ".rows"; }
  const std::string& folder() const { return folder_; }

 private:
  /// Keeps `newest`.
  void MakeRoom(const std::string& newest) const;

  std::string folder_;
  std::int64_t limit_bytes_;
};

}  // namespace troupe
