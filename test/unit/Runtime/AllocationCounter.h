//===- AllocationCounter.h - Counts heap allocations --------------*- C++ -*-===//

#ifndef SPMD_TEST_UNIT_RUNTIME_ALLOCATIONCOUNTER_H
#define SPMD_TEST_UNIT_RUNTIME_ALLOCATIONCOUNTER_H

#include <cstdint>

/// Heap allocations of the whole process so far, from any thread and library.
int64_t countAllocations();
/// False under AddressSanitizer, which has its own malloc.
bool countsAllocations();

#endif // SPMD_TEST_UNIT_RUNTIME_ALLOCATIONCOUNTER_H
