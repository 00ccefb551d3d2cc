// SPDX-License-Identifier: Apache-2.0
// A function with LDNN_VECTOR_CLONES before it is compiled for wider vectors as well, and the clone
// for the widest that the processor has is called. For loops that work on each element by itself:
// as everything is compiled without contraction, all clones give the same bits.
#pragma once

// Sanitizers begin after the loader has chosen among clones, which they would have to watch.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define LDNN_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LDNN_VECTOR_CLONES
#endif
