// Marks functions that are compiled for several CPUs, so that one binary has loops for each.
#pragma once

#if defined(__x86_64__) && defined(__GLIBC__) && __GNUC__ >= 12 && !defined(TROUPE_SANITIZED)
#define TROUPE_FOR_EVERY_CPU [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define TROUPE_FOR_EVERY_CPU
#endif
// A clone gets only what is inlined into it.
#define TROUPE_INLINED [[gnu::always_inline]] inline
#define TROUPE_INLINED_LAMBDA __attribute__((always_inline))
