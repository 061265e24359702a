# libtorch: that of the system, or with TROUPE_TORCH=DIR an installed PyTorch, 2.7 or
# later (the folder with include/ and lib/: `python3 -c "import torch; print(torch.__path__[0])"`).
# The package files of a PyTorch are not used: they require a certain CUDA toolkit, and
# prefer the system's libtorch.
# If that PyTorch was built for CUDA and nvcc is installed, modules/torch/cuda/ is built for it, too.
set(TROUPE_TORCH "" CACHE PATH "Folder of an installed PyTorch; empty: the system's libtorch")
set(TROUPE_TORCH_CUDA "AUTO" CACHE STRING
    "Use libtorch's CUDA part: AUTO (where it and nvcc are), ON, OFF")
set(TROUPE_TORCH_HAS_CUDA OFF)
add_library(troupe_libtorch INTERFACE)

if(NOT TROUPE_TORCH)
  find_package(Torch REQUIRED)
  target_link_libraries(troupe_libtorch INTERFACE ${TORCH_LIBRARIES})
  target_compile_options(troupe_libtorch INTERFACE ${TORCH_CXX_FLAGS})
  if(TROUPE_TORCH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TROUPE_TORCH_CUDA=ON: expected TROUPE_TORCH to name a PyTorch built for "
                        "CUDA, got the system's libtorch")
  endif()
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
if(version VERSION_LESS 2.8)
  message(FATAL_ERROR "TROUPE_TORCH: expected PyTorch 2.8 or later, which has this compiler's "
                      "std::string and its allocator of pinned memory, found ${version}")
endif()
message(STATUS "PyTorch ${version} of ${TROUPE_TORCH}")
target_include_directories(troupe_libtorch SYSTEM INTERFACE
  ${TROUPE_TORCH}/include ${TROUPE_TORCH}/include/torch/csrc/api/include)
# It finds its own dependencies in its folder.
target_link_libraries(troupe_libtorch INTERFACE ${TROUPE_TORCH}/lib/libtorch_cpu.so
                                                ${TROUPE_TORCH}/lib/libc10.so)
target_link_options(troupe_libtorch INTERFACE -Wl,--allow-shlib-undefined)

if(NOT TROUPE_TORCH_CUDA)
  return()
endif()
if(NOT TROUPE_HAS_CUDA OR NOT EXISTS ${TROUPE_TORCH}/lib/libtorch_cuda.so)
  if(NOT TROUPE_TORCH_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "TROUPE_TORCH_CUDA=ON: expected nvcc (TROUPE_CUDA) and a PyTorch with "
                        "lib/libtorch_cuda.so in ${TROUPE_TORCH}, found nvcc: ${TROUPE_HAS_CUDA}")
  endif()
  return()
endif()
set(TROUPE_TORCH_HAS_CUDA ON)
message(STATUS "PyTorch's CUDA part is linked")
target_compile_definitions(troupe_libtorch INTERFACE TROUPE_TORCH_CUDA=1)
target_include_directories(troupe_libtorch SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
# No code calls libtorch_cuda.so by name: it registers itself when it is loaded. With --as-needed the
# linker would leave it out, and no tensor could be on a device.
target_link_libraries(troupe_libtorch INTERFACE
  "-Wl,--push-state,--no-as-needed,${TROUPE_TORCH}/lib/libtorch_cuda.so,--pop-state"
  ${TROUPE_TORCH}/lib/libc10_cuda.so)
