# gpu/, in parts, so that machines without a GPU build and run as much of it as possible:
#   troupe_gpu_kernels  the plain loops, everywhere
#   troupe_gpu_host     streams, events, memory; needs only CUDA's headers. Linked with one of:
#   troupe_gpu          the kernels and the CUDA runtime, with nvcc
#   troupe_emulated     in tests, a runtime that emulates devices on the host (tests/gpu/emulated)
# Programs list troupe_gpu or troupe_emulated last. TROUPE_CUDA=OFF leaves out all but the first, ON
# requires nvcc.
set(TROUPE_CUDA "AUTO" CACHE STRING "Build gpu/ for CUDA devices: AUTO (where nvcc is), ON, OFF")
set(TROUPE_HAS_CUDA OFF)          # nvcc, for programs that use devices
set(TROUPE_HAS_CUDA_HEADERS OFF)  # for host code, and tests of it with the emulated runtime
if(TROUPE_CUDA)
  find_program(TROUPE_NVCC nvcc PATHS /usr/local/cuda/bin)
  # nvcc does not support sanitizers.
  if(NOT TROUPE_SANITIZE)
    include(CheckLanguage)
    if(TROUPE_NVCC AND NOT CMAKE_CUDA_COMPILER)
      set(CMAKE_CUDA_COMPILER ${TROUPE_NVCC})
    endif()
    check_language(CUDA)
  endif()
  if(CMAKE_CUDA_COMPILER)
    set(TROUPE_HAS_CUDA ON)
  elseif(NOT TROUPE_CUDA STREQUAL "AUTO" AND NOT TROUPE_SANITIZE)
    message(FATAL_ERROR "TROUPE_CUDA=ON: expected nvcc on the PATH or in CUDACXX, found none")
  endif()
  get_filename_component(nvcc_folder "${TROUPE_NVCC}" DIRECTORY)
  get_filename_component(nvcc_folder "${nvcc_folder}" DIRECTORY)
  find_path(TROUPE_CUDA_INCLUDE cuda_runtime_api.h
            HINTS ${nvcc_folder}/include /usr/local/cuda/include)
  if(TROUPE_CUDA_INCLUDE)
    set(TROUPE_HAS_CUDA_HEADERS ON)
  endif()
endif()

# Without errno for math functions the plain loops are vectorised; results do not change.
troupe_library(gpu/kernels)
set_source_files_properties(gpu/kernels/adamw.cpp gpu/kernels/rms_norm.cpp
                            PROPERTIES COMPILE_OPTIONS "-fno-math-errno;-fno-trapping-math")

if(TROUPE_HAS_CUDA_HEADERS)
  file(GLOB host_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/gpu/*.cpp)
  add_library(troupe_gpu_host STATIC ${host_sources})
  target_compile_definitions(troupe_gpu_host PUBLIC TROUPE_HAS_CUDA=1)
  target_include_directories(troupe_gpu_host PUBLIC ${PROJECT_SOURCE_DIR})
  target_include_directories(troupe_gpu_host SYSTEM PUBLIC ${TROUPE_CUDA_INCLUDE})
  target_link_libraries(troupe_gpu_host PUBLIC troupe_gpu_kernels Threads::Threads ${CMAKE_DL_LIBS}
                                        PRIVATE troupe_warnings)
endif()

if(TROUPE_HAS_CUDA)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    # A100 and H100; newer devices translate the code of the last.
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90 CACHE STRING "compute capabilities")
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/gpu/kernels/*.cu)
  add_library(troupe_gpu STATIC ${cuda_sources})
  # CMake 3.25 has no flag for C++20 in this compiler's device code.
  set_target_properties(troupe_gpu PROPERTIES CUDA_STANDARD 17)
  target_compile_options(troupe_gpu PRIVATE --expt-relaxed-constexpr)
  target_link_libraries(troupe_gpu PUBLIC troupe_gpu_host CUDA::cudart_static)
  message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION}, for ${CMAKE_CUDA_ARCHITECTURES}")
elseif(TROUPE_HAS_CUDA_HEADERS)
  message(STATUS "CUDA: headers only, for tests on an emulated device")
else()
  message(STATUS "CUDA: not built")
endif()
