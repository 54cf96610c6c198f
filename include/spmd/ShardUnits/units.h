/*===- units.h - shard units from any language ------------------*- C -*-===*\
|*                                                                        *|
|* libspmd_units: the wrap policies of the compiler, for a model that is  *|
|* described as JSON, with policies that call back.                       *|
|*                                                                        *|
\*===----------------------------------------------------------------------===*/

#ifndef SPMD_SHARDUNITS_UNITS_H
#define SPMD_SHARDUNITS_UNITS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Answers for the policy {"callable": N} or {"custom": N}: 0 no, 1 yes, -1 failed, which ends the assignment. module
 * counts `module_tree`. A custom policy is asked with recurse 0 and nonwrapped 0. *options may be set to JSON of unit
 * options; it has to live until the next call. */
typedef int32_t (*spmd_units_decide)(void *context, int32_t policy, int64_t module, int32_t recurse, int64_t nonwrapped,
                                     const char **options);

/* Assigns shard units. `request` is JSON: `module_tree` and `parameters` as in step.json, `policy`, `ranks`, and the
 * members of a plan file (docs/shard-units.md). Returns 0 and the units as JSON, or 2 and an error message; `*result`
 * is freed with spmd_units_free. `decide` may be null when no policy calls back. */
int32_t spmd_units_assign(const char *request, spmd_units_decide decide, void *context, char **result);

void spmd_units_free(char *result);

#ifdef __cplusplus
}
#endif

#endif /* SPMD_SHARDUNITS_UNITS_H */
