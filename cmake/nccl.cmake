# transport/gpu needs CUDA's headers, transport/nccl also NCCL's. As in gpu.cmake, programs list the
# implementation last:
#   troupe_transport_nccl  needs only headers. Linked with one of:
#   troupe_nccl            NCCL itself
#   troupe_emulated_nccl   in tests, threads that emulate NCCL (tests/gpu/emulated/nccl)
# TROUPE_NCCL=OFF leaves it out, ON requires it.
set(TROUPE_NCCL "AUTO" CACHE STRING "Build transport/nccl: AUTO (where NCCL is), ON, OFF")
set(TROUPE_HAS_NCCL OFF)          # for programs that use devices
set(TROUPE_HAS_NCCL_HEADERS OFF)  # for tests with the emulated one
if(TROUPE_HAS_CUDA_HEADERS)
  troupe_library(transport/gpu DEPENDS troupe_transport troupe_gpu_host)
  if(TROUPE_NCCL)
    get_filename_component(cuda_folder "${TROUPE_CUDA_INCLUDE}" DIRECTORY)
    find_path(TROUPE_NCCL_INCLUDE nccl.h HINTS ${TROUPE_CUDA_INCLUDE})
    find_library(TROUPE_NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${cuda_folder}/lib64
                                                                   ${cuda_folder}/lib)
  endif()
endif()
if(TROUPE_NCCL AND TROUPE_HAS_CUDA_HEADERS AND TROUPE_NCCL_INCLUDE)
  set(TROUPE_HAS_NCCL_HEADERS ON)
  troupe_library(transport/nccl DEPENDS troupe_transport_gpu)
  target_include_directories(troupe_transport_nccl SYSTEM PUBLIC ${TROUPE_NCCL_INCLUDE})
  if(TROUPE_NCCL_LIBRARY AND TROUPE_HAS_CUDA)
    set(TROUPE_HAS_NCCL ON)
    add_library(troupe_nccl INTERFACE)
    target_compile_definitions(troupe_nccl INTERFACE TROUPE_HAS_NCCL=1)
    target_link_libraries(troupe_nccl INTERFACE troupe_transport_nccl ${TROUPE_NCCL_LIBRARY})
    message(STATUS "NCCL: ${TROUPE_NCCL_LIBRARY}")
  endif()
endif()
if(NOT TROUPE_HAS_NCCL)
  if(NOT TROUPE_NCCL STREQUAL "AUTO" AND TROUPE_NCCL AND NOT TROUPE_SANITIZE)
    message(FATAL_ERROR "TROUPE_NCCL=ON: expected nvcc, nccl.h and libnccl, found nvcc "
                        "${TROUPE_HAS_CUDA}, ${TROUPE_NCCL_INCLUDE}, ${TROUPE_NCCL_LIBRARY}")
  endif()
  message(STATUS "NCCL: not built")
endif()
