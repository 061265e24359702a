# The version of `git describe`, without a build step that always runs.
execute_process(COMMAND git describe --always --dirty WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                OUTPUT_VARIABLE troupe_commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)

# The GPU parts that `troupe version` prints; empty: not in this build.
set(troupe_cuda_version "")
set(troupe_nccl_version "")
if(TROUPE_HAS_CUDA)
  set(troupe_cuda_version "${CMAKE_CUDA_COMPILER_VERSION}")
endif()
if(TROUPE_HAS_NCCL)
  file(STRINGS "${TROUPE_NCCL_INCLUDE}/nccl.h" lines REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" troupe_nccl_version "${lines}")
  string(REPLACE ";" "." troupe_nccl_version "${troupe_nccl_version}")
endif()
set_source_files_properties(app/version.cpp PROPERTIES COMPILE_DEFINITIONS
  "TROUPE_VERSION=\"${PROJECT_VERSION}\";TROUPE_COMMIT=\"${troupe_commit}\";\
TROUPE_CUDA_VERSION=\"${troupe_cuda_version}\";TROUPE_NCCL_VERSION=\"${troupe_nccl_version}\"")

