//===- AllocationCounter.h - Counts heap allocations --------------*- C++ -*-===//

#ifndef SPMD_TEST_UNIT_RUNTIME_ALLOCATIONCOUNTER_H
#define SPMD_TEST_UNIT_RUNTIME_ALLOCATIONCOUNTER_H

#include <cstdint>

/// Heap allocations of the whole process so far, from any thread and library;
/// none under sanitizers.
int64_t countAllocations();

#endif // SPMD_TEST_UNIT_RUNTIME_ALLOCATIONCOUNTER_H
