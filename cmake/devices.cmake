# Makes the files of devices/ a part of the program: DEVICE_TEXTS, a source for plan/cost.
file(GLOB device_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/devices/*.json)
set(DEVICE_ENTRIES "")
foreach(file IN LISTS device_files)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND DEVICE_ENTRIES "      {\"${name}\", R\"json(${text})json\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()
set(DEVICE_TEXTS ${PROJECT_BINARY_DIR}/device_texts.cpp)
file(CONFIGURE OUTPUT ${DEVICE_TEXTS} @ONLY CONTENT [[#include "plan/cost/device_texts.hpp"

namespace troupe {

const std::vector<DeviceText>& DeviceTexts() {
  static const std::vector<DeviceText> texts = {
@DEVICE_ENTRIES@  };
  return texts;
}

}  // namespace troupe
]])
