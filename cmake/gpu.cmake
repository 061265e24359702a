# gpu/: the plain loops always, the rest where nvcc is. TROUPE_CUDA=OFF leaves it out, ON insists.
set(TROUPE_CUDA "AUTO" CACHE STRING "Build gpu/ for CUDA devices: AUTO (where nvcc is), ON, OFF")
set(TROUPE_HAS_CUDA OFF)
if(TROUPE_CUDA AND NOT TROUPE_SANITIZE)
  include(CheckLanguage)
  find_program(TROUPE_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(TROUPE_NVCC AND NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${TROUPE_NVCC})
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(TROUPE_HAS_CUDA ON)
  elseif(NOT TROUPE_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "TROUPE_CUDA=ON: expected nvcc on the PATH or in CUDACXX, found none")
  endif()
endif()

# Without math errors the plain loops become vector instructions; no result changes.
troupe_library(gpu/kernels)
set_source_files_properties(gpu/kernels/adamw.cpp
                            PROPERTIES COMPILE_OPTIONS "-fno-math-errno;-fno-trapping-math")

if(TROUPE_HAS_CUDA)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    # A100 and H100; newer ones translate the code of the last.
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90 CACHE STRING "compute capabilities")
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/gpu/*.cpp
       ${PROJECT_SOURCE_DIR}/gpu/kernels/*.cu)
  add_library(troupe_gpu STATIC ${cuda_sources})
  # CMake 3.25 knows no flag for C++20 in this compiler's device code.
  set_target_properties(troupe_gpu PROPERTIES CUDA_STANDARD 17)
  target_compile_definitions(troupe_gpu PUBLIC TROUPE_HAS_CUDA=1)
  target_include_directories(troupe_gpu PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(troupe_gpu PUBLIC troupe_gpu_kernels CUDA::cudart_static)
  set(warnings $<TARGET_PROPERTY:troupe_warnings,INTERFACE_COMPILE_OPTIONS>)
  target_compile_options(troupe_gpu PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>"
                                            $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION}, for ${CMAKE_CUDA_ARCHITECTURES}")
else()
  message(STATUS "CUDA: not built")
endif()
