# Checks what the exporters write; for their tests and for the fuzz target of traces.
file(GLOB lint_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
add_library(troupe_trace_lint STATIC ${lint_sources})
target_link_libraries(troupe_trace_lint PUBLIC troupe_trace_export PRIVATE troupe_warnings)
