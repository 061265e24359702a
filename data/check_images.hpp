// Looks at every image of a data set before a run needs it, on several threads.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "data/image.hpp"
#include "data/llava.hpp"

namespace troupe {

enum class ImageDepth : std::uint8_t {
  kNone,    ///< not at all
  kHeader,  ///< type, size, first bytes and header of the file
  kDecode   ///< all of it
};

/// Images of one format.
struct FormatCount {
  std::int64_t count = 0;
  std::optional<ImageFacts> smallest;  ///< by pixels
  std::optional<ImageFacts> largest;
};

struct ImageSurvey {
  std::int64_t num_images = 0;  ///< with those that have a fault
  std::array<FormatCount, kNumImageFormats> formats;
};

/// Checks the images of the rows that are usable, and calls `report` for each fault, in the order
/// of the rows, from one thread at a time. Holds no more than a few rows' faults at any time.
ImageSurvey CheckImages(const LlavaSet& set, ImageDepth depth,
                        const std::function<void(const DataFault&)>& report);

}  // namespace troupe
