// The files of devices/, which are part of the program (cmake/devices.cmake).
#pragma once

#include <string_view>
#include <vector>

namespace troupe {

struct DeviceText {
  std::string_view name;  ///< of the file, without .json
  std::string_view text;
};

const std::vector<DeviceText>& DeviceTexts();

}  // namespace troupe
