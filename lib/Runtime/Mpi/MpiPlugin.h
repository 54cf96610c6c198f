/*===- MpiPlugin.h - What an MPI library does for the runtime -----*- C -*-===*\
|*
|* Hosts reach each other through MPI's point-to-point messages. MPI libraries
|* have different binary interfaces, so each has a plug-in of its own, which is
|* compiled from MpiPlugin.c, loaded when a job has several hosts, and seen
|* through this table alone. Functions return 0, or fill the text of `error`.
|* Calls come from any thread.
|*
\*===----------------------------------------------------------------------===*/

#ifndef SPMD_LIB_RUNTIME_MPI_MPIPLUGIN_H
#define SPMD_LIB_RUNTIME_MPI_MPIPLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SPMD_MPI_VERSION = 1, SPMD_MPI_TEXT = 512 };

typedef struct spmd_mpi_error {
  char text[SPMD_MPI_TEXT];
} spmd_mpi_error;

/* A message under way. */
typedef struct spmd_mpi_request {
  uint64_t handle;
} spmd_mpi_request;

typedef struct spmd_mpi {
  int32_t version;

  /* Starts MPI, unless somebody has. */
  int (*start)(spmd_mpi_error *error);
  /* Ends MPI, if `start` began it. All processes call it. */
  void (*finish)(void);
  int32_t (*rank)(void);
  int32_t (*size)(void);
  /* Of the library, for people. */
  void (*describe)(char *text, int32_t size);

  /* A space of messages of its own; all processes open the same ones in the same order. */
  int (*open)(int32_t *space, spmd_mpi_error *error);
  int (*send)(int32_t space, const void *bytes, int64_t count, int32_t to, int32_t tag, spmd_mpi_request *request,
              spmd_mpi_error *error);
  int (*receive)(int32_t space, void *bytes, int64_t count, int32_t from, int32_t tag, spmd_mpi_request *request,
                 spmd_mpi_error *error);
  /* *done is 1 when all requests are complete; completed ones may be given again. */
  int (*test)(spmd_mpi_request *requests, int32_t count, int32_t *done, spmd_mpi_error *error);
  /* Gives up what has not come. */
  void (*cancel)(spmd_mpi_request *requests, int32_t count);
  /* A message with `tag` from anybody: *count is its bytes, -1 when there is none. */
  int (*probe)(int32_t space, int32_t tag, int32_t *from, int64_t *count, spmd_mpi_error *error);
  /* The bytes of all processes, each of which has as many. */
  int (*gather)(int32_t space, const void *mine, int64_t count, void *all, spmd_mpi_error *error);
} spmd_mpi;

/* What a plug-in exports. */
const spmd_mpi *spmd_mpi_table(void);

#ifdef __cplusplus
}
#endif

#endif /* SPMD_LIB_RUNTIME_MPI_MPIPLUGIN_H */
