# modules/device: the additions of backend = "cuda".
#   troupe_stream_queue  built if CUDA's headers are installed
#   troupe_cuda_backend  built with nvcc; without NCCL, collectives use copies
#   troupe_device        linked by programs; contains the backend if libtorch computes on GPUs. Otherwise
#                        a test program that only starts links the backend, to check that it links.
if(TROUPE_HAS_CUDA_HEADERS)
  add_library(troupe_stream_queue STATIC ${PROJECT_SOURCE_DIR}/modules/device/stream_lane.cpp
                                         ${PROJECT_SOURCE_DIR}/modules/device/stream_queue.cpp)
  target_link_libraries(troupe_stream_queue PUBLIC troupe_modules troupe_gpu_host troupe_trace
                                            PRIVATE troupe_warnings)
endif()
if(NOT TROUPE_WITH_TORCH)
  return()
endif()

add_library(troupe_device STATIC ${PROJECT_SOURCE_DIR}/modules/device/backend.cpp)
target_link_libraries(troupe_device PUBLIC troupe_modules PRIVATE troupe_torch troupe_warnings)
if(TROUPE_HAS_CUDA)
  target_compile_definitions(troupe_device PRIVATE TROUPE_HAS_GPU_CODE=1)
  add_library(troupe_cuda_backend STATIC ${PROJECT_SOURCE_DIR}/modules/device/cuda_backend.cpp)
  target_link_libraries(
    troupe_cuda_backend PUBLIC troupe_stream_queue troupe_transport_gpu troupe_torch
                               $<TARGET_NAME_IF_EXISTS:troupe_nccl> troupe_gpu
                        PRIVATE troupe_warnings)
  if(TROUPE_TORCH_HAS_CUDA)
    target_compile_definitions(troupe_device PRIVATE TROUPE_CUDA_BACKEND=1)
    target_link_libraries(troupe_device PRIVATE troupe_cuda_backend)
  else()
    add_executable(cuda_link_check ${PROJECT_SOURCE_DIR}/modules/device/link_check.cpp)
    target_link_libraries(cuda_link_check PRIVATE troupe_cuda_backend troupe_warnings)
  endif()
endif()
