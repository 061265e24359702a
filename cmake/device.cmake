# modules/device: what backend = "cuda" adds to a program. The backend itself is part of programs whose
# libtorch computes on GPUs; wherever nvcc is, it is compiled, and linked into one that does nothing.
add_library(troupe_device STATIC ${PROJECT_SOURCE_DIR}/modules/device/backend.cpp)
target_link_libraries(troupe_device PUBLIC troupe_modules PRIVATE troupe_torch troupe_warnings)

if(TROUPE_HAS_CUDA_HEADERS)
  add_library(troupe_stream_queue STATIC ${PROJECT_SOURCE_DIR}/modules/device/stream_queue.cpp)
  target_link_libraries(troupe_stream_queue PUBLIC troupe_modules troupe_gpu_host
                                            PRIVATE troupe_warnings)
endif()
