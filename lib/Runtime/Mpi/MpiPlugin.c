/*===- MpiPlugin.c - The plug-in of one MPI library -----------------------===*/

#include "MpiPlugin.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { kMostSpaces = 256 };

static MPI_Comm spaces[kMostSpaces];
static int32_t numSpaces;
static int isOurs;

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a request fits its handle");

static int check(int code, const char *what, spmd_mpi_error *error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length;
  if (code == MPI_SUCCESS)
    return 0;
  MPI_Error_string(code, text, &length);
  snprintf(error->text, sizeof error->text, "%s: %s", what, text);
  return 1;
}

static int startMpi(spmd_mpi_error *error) {
  int isStarted = 0, level = 0;
  MPI_Initialized(&isStarted);
  if (isStarted)
    MPI_Query_thread(&level);
  else if (check(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread", error))
    return 1;
  isOurs = !isStarted;
  if (level == MPI_THREAD_MULTIPLE)
    return 0;
  snprintf(error->text, sizeof error->text, "the MPI library lets only one thread communicate (no MPI_THREAD_MULTIPLE)");
  return 1;
}

static void finishMpi(void) {
  int isFinished = 0;
  MPI_Finalized(&isFinished);
  if (isOurs && !isFinished)
    MPI_Finalize();
}

static int32_t getRank(void) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

static int32_t getSize(void) {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

static void describeLibrary(char *text, int32_t size) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length;
  MPI_Get_library_version(version, &length);
  version[strcspn(version, ",\n")] = 0;
  snprintf(text, (size_t)size, "%s", version);
}

static int openSpace(int32_t *space, spmd_mpi_error *error) {
  if (numSpaces == kMostSpaces) {
    snprintf(error->text, sizeof error->text, "more than %d spaces of messages", (int)kMostSpaces);
    return 1;
  }
  if (check(MPI_Comm_dup(MPI_COMM_WORLD, &spaces[numSpaces]), "MPI_Comm_dup", error))
    return 1;
  MPI_Comm_set_errhandler(spaces[numSpaces], MPI_ERRORS_RETURN);
  *space = numSpaces++;
  return 0;
}

static MPI_Request load(const spmd_mpi_request *from) {
  MPI_Request request;
  memcpy(&request, &from->handle, sizeof request);
  return request;
}

static void store(MPI_Request request, spmd_mpi_request *to) {
  to->handle = 0;
  memcpy(&to->handle, &request, sizeof request);
}

static int sendBytes(int32_t space, const void *bytes, int64_t count, int32_t to, int32_t tag, spmd_mpi_request *request,
                     spmd_mpi_error *error) {
  MPI_Request made = MPI_REQUEST_NULL;
  int code = MPI_Isend(bytes, (int)count, MPI_BYTE, to, tag, spaces[space], &made);
  store(made, request);
  return check(code, "MPI_Isend", error);
}

static int receiveBytes(int32_t space, void *bytes, int64_t count, int32_t from, int32_t tag, spmd_mpi_request *request,
                        spmd_mpi_error *error) {
  MPI_Request made = MPI_REQUEST_NULL;
  int code = MPI_Irecv(bytes, (int)count, MPI_BYTE, from, tag, spaces[space], &made);
  store(made, request);
  return check(code, "MPI_Irecv", error);
}

static int testAll(spmd_mpi_request *requests, int32_t count, int32_t *done, spmd_mpi_error *error) {
  *done = 1;
  for (int32_t i = 0; i < count; ++i) {
    MPI_Request request = load(&requests[i]);
    int isDone = 1;
    if (request != MPI_REQUEST_NULL && check(MPI_Test(&request, &isDone, MPI_STATUS_IGNORE), "MPI_Test", error))
      return 1;
    store(request, &requests[i]);
    *done &= isDone;
  }
  return 0;
}

static void cancelAll(spmd_mpi_request *requests, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    MPI_Request request = load(&requests[i]);
    if (request == MPI_REQUEST_NULL)
      continue;
    MPI_Cancel(&request);
    MPI_Request_free(&request);
    store(MPI_REQUEST_NULL, &requests[i]);
  }
}

static int probeSpace(int32_t space, int32_t tag, int32_t *from, int64_t *count, spmd_mpi_error *error) {
  MPI_Status status;
  int isThere = 0, bytes = -1;
  if (check(MPI_Iprobe(MPI_ANY_SOURCE, tag, spaces[space], &isThere, &status), "MPI_Iprobe", error))
    return 1;
  if (isThere) {
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    *from = status.MPI_SOURCE;
  }
  *count = bytes;
  return 0;
}

static int gatherBytes(int32_t space, const void *mine, int64_t count, void *all, spmd_mpi_error *error) {
  return check(MPI_Allgather(mine, (int)count, MPI_BYTE, all, (int)count, MPI_BYTE, spaces[space]), "MPI_Allgather",
               error);
}

const spmd_mpi *spmd_mpi_table(void) {
  static const spmd_mpi table = {SPMD_MPI_VERSION, startMpi,     finishMpi, getRank,   getSize,    describeLibrary, openSpace,
                                 sendBytes,        receiveBytes, testAll,   cancelAll, probeSpace, gatherBytes};
  return &table;
}
