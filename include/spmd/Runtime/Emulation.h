/*===- Emulation.h - what emulated GPU kernels tell about their run -*- C -*-===*\
|*
|* A shared object of emulated kernels (docs/emulation.md) exports, beside its kernels, the functions below.
|*
\*===------------------------------------------------------------------------===*/

#ifndef SPMD_RUNTIME_EMULATION_H
#define SPMD_RUNTIME_EMULATION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The order in which the threads of a block take turns. A correct kernel computes the same bits in all of them. */
enum SpmdEmulationSchedule {
  SPMD_SCHEDULE_FORWARD,    /**< round robin, thread 0 first */
  SPMD_SCHEDULE_REVERSE,    /**< round robin, the last thread first */
  SPMD_SCHEDULE_RANDOM,     /**< any thread that can go on, drawn from the seed */
  SPMD_SCHEDULE_WARP_GREEDY /**< one warp until all of it waits at a barrier, then the next */
};

/** What really ran since the object was loaded or reset. */
struct SpmdEmulationCounts {
  int64_t kernels;  /**< kernels that were launched at least once */
  int64_t launches; /**< of all kernels */
  int64_t blocks;   /**< blocks that ran to their end */
  int64_t threads;  /**< threads that ran to their end */
};

/** How kernels run from now on: with every memory access checked or not, in which order, and for a random order from
 *  which seed. At first: unchecked, forward. Not while a kernel runs. Returns 0, or -1 for an unknown schedule. */
int32_t spmd_emulation_configure(int32_t checked, int32_t schedule, uint64_t seed);

/** The message of the first check that failed, or null. From then on kernels do nothing, so that it stays the first. */
const char *spmd_emulation_error(void);

/** The arguments of the launch that it failed in. */
void *const *spmd_emulation_failed_arguments(void);

/** Adds up what ran. */
void spmd_emulation_counts(struct SpmdEmulationCounts *counts);

/** Forgets error and counts. */
void spmd_emulation_reset(void);

#ifdef __cplusplus
}
#endif

#endif /* SPMD_RUNTIME_EMULATION_H */
