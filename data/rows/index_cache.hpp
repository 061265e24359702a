// The folder of indexes that jobs share. An index is whole or absent; a job that needs one which another
// job is making waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "data/rows/row_index.hpp"

namespace troupe {

class IndexCache {
 public:
  /// `folder`: made if it is missing; "~" is the home folder. Indexes that were not used for longest
  /// are removed when those in it take more than `limit_bytes`. Throws FileError if it cannot be made.
  IndexCache(const std::string& folder, std::int64_t limit_bytes);

  /// Returns the index of a key of letters and digits. If there is none that `is_final`, `build` fills it;
  /// what `build` throws leaves no index.
  std::shared_ptr<const RowIndex> Get(
      const std::string& key, std::size_t num_encoders, const std::function<void(RowIndex&)>& build,
      const std::function<bool(const RowIndex&)>& is_final = {}) const;

  const std::string& folder() const { return folder_; }

 private:
  /// Returns the index if there is one.
  std::shared_ptr<const RowIndex> Find(const std::string& key, std::size_t num_encoders) const;
  std::string PathOf(const std::string& key) const { return folder_ + "/" + key + ".rows"; }
  void RemoveOldest() const;

  std::string folder_;
  std::int64_t limit_bytes_;
};

}  // namespace troupe
