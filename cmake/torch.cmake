# libtorch: the one that the system has, or with TROUPE_TORCH=DIR an installed PyTorch of 2.7 or later
# (the folder with include/ and lib/, e.g. of `python3 -c "import torch; print(torch.__path__[0])"`).
# Of a PyTorch its own package files are not used: they insist on a CUDA toolkit of their taste, and
# find the system's libtorch first where there is one.
set(TROUPE_TORCH "" CACHE PATH "Folder of an installed PyTorch; empty: the system's libtorch")
add_library(troupe_libtorch INTERFACE)

if(NOT TROUPE_TORCH)
  find_package(Torch REQUIRED)
  target_link_libraries(troupe_libtorch INTERFACE ${TORCH_LIBRARIES})
  target_compile_options(troupe_libtorch INTERFACE ${TORCH_CXX_FLAGS})
  return()
endif()

file(GLOB version_files ${TROUPE_TORCH}/include/torch/headeronly/version.h
     ${TROUPE_TORCH}/include/torch/csrc/api/include/torch/version.h)
if(NOT version_files)
  message(FATAL_ERROR "TROUPE_TORCH: expected the folder of an installed PyTorch, with include/ and "
                      "lib/ in it, got ${TROUPE_TORCH}")
endif()
foreach(file IN LISTS version_files)
  file(STRINGS ${file} found REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
  list(APPEND lines ${found})
endforeach()
string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" version "${lines}")
if(version VERSION_LESS 2.7)
  message(FATAL_ERROR "TROUPE_TORCH: expected PyTorch 2.7 or later, which has this compiler's "
                      "std::string, found ${version}")
endif()
message(STATUS "PyTorch ${version} of ${TROUPE_TORCH}")
target_include_directories(troupe_libtorch SYSTEM INTERFACE
  ${TROUPE_TORCH}/include ${TROUPE_TORCH}/include/torch/csrc/api/include)
# Its own dependencies it finds itself, beside it.
target_link_libraries(troupe_libtorch INTERFACE ${TROUPE_TORCH}/lib/libtorch_cpu.so
                                                ${TROUPE_TORCH}/lib/libc10.so)
target_link_options(troupe_libtorch INTERFACE -Wl,--allow-shlib-undefined)
