//===- BlasMemory.cpp - Packing buffers, one per thread -------------------===//
//
// [Note: packing buffers] OpenBLAS packs operands into buffers from a table.
// Its serial build searches the table without a lock: two threads that enter at
// the same moment get the same buffer, and, about once in a million products,
// one of them a wrong result. The build links what we call of the static library
// into one object with --wrap (CMakeLists.txt), so that both functions below
// stand between OpenBLAS and its table: each thread keeps one buffer for itself,
// and the table is only touched under a lock, when a thread starts or ends.
// The object shows nothing but what we call, so our copy also stays apart from
// any other BLAS of the process.
//
//===----------------------------------------------------------------------===//

#include "spmd/Runtime/Host/Gemm.h"

#include <mutex>

extern "C" {
void *spmd_blas_memory_alloc(int position);
void spmd_blas_memory_free(void *buffer);
void *__wrap_blas_memory_alloc(int position);
void __wrap_blas_memory_free(void *buffer);
}

static void *lockedAlloc(int position) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  return spmd_blas_memory_alloc(position);
}

namespace {
/// The buffer of a thread, which goes back to the table with the thread. Giving
/// back is one store, so it needs no lock.
struct ThreadBuffer {
  void *memory = nullptr;
  bool busy = false;
  ~ThreadBuffer() {
    if (memory)
      spmd_blas_memory_free(memory);
  }
};
thread_local ThreadBuffer own;
} // namespace

void *__wrap_blas_memory_alloc(int position) {
  if (own.busy) // a routine that wants two
    return lockedAlloc(position);
  if (!own.memory)
    own.memory = lockedAlloc(position);
  own.busy = true;
  return own.memory;
}

void __wrap_blas_memory_free(void *buffer) {
  if (buffer == own.memory)
    own.busy = false;
  else
    spmd_blas_memory_free(buffer);
}

void spmd::runtime::prepareBlasThread() { __wrap_blas_memory_free(__wrap_blas_memory_alloc(0)); }
