// The Hugging Face folders that a run started from, as it found them: RUN/folders.txt. What is not
// trained is not saved, so a folder that has changed would silently change the model.
#pragma once

#include <set>
#include <string>

#include "configs/config.hpp"

namespace troupe {

inline constexpr const char* kFoldersFile = "folders.txt";

/// Writes digests of the folders of `config` into a run directory that has none. Does nothing for a
/// run without folders. Throws FileError.
void NoteFolders(const std::string& run, const Config& config);

/// Throws ModelFolderError, one line that names the key, if a folder of `config` is not what the run
/// started from, unless its module is in `accepted`. A folder that cannot be read is reported where
/// it is read.
void RequireSameFolders(const std::string& run, const Config& config,
                        const std::set<std::string>& accepted = {});

}  // namespace troupe
