//===- Launch.cpp - what emulated kernels call and export -----------------===//

#include "Worker.h"
#include "spmd/Runtime/Emulation.h"

using namespace spmd::emulation;

/// All kernels of the object: the linker puts their descriptors together and knows where.
extern "C" __attribute__((visibility("hidden"))) Kernel __start_spmd_kernels[], __stop_spmd_kernels[];

namespace {

Settings settings{};
SpinLock lock; ///< of all that follows
Worker *idleWorkers;
int64_t numBlocks, numThreads;
Text firstError;
bool hasError;
void *const *failedArguments;

Worker *takeWorker() {
  lock.lock();
  Worker *worker = idleWorkers;
  if (worker)
    idleWorkers = worker->next;
  lock.unlock();
  // Zeroes are what a new worker consists of.
  return worker ? worker : static_cast<Worker *>(allocatePages(sizeof(Worker)));
}

} // namespace

bool Worker::run(Kernel &launched, const Settings &how, void *const *arguments, const int64_t *coordinates,
                 int64_t begin, int64_t end) {
  kernel = &launched;
  settings = how;
  settings.isChecked |= !kernel->plain;
  function = settings.isChecked ? kernel->checked : kernel->plain;
  args = arguments;
  coords = coordinates;
  numThreads = kernel->blockSize;
  hasFailed = false;
  firstSerial = blockSerial + 1;
  if (!prepareMemory())
    return false;
  for (blockNumber = begin; blockNumber < end; ++blockNumber) {
    // Not a number, in every floating type.
    __builtin_memset(sharedMemory.data, 0xFF, static_cast<size_t>(kernel->sharedBytes));
    if (!runBlock())
      return false;
  }
  return true;
}

void Worker::release() {
  for (Pages *pages : {&stacks, &sharedMemory, &sharedTouches, &globalTouches, &ranges, &localRanges})
    if (pages->data)
      releasePages(pages->data, pages->bytes);
}

/// Ends the idle workers when the object that this is linked into is unloaded.
__attribute__((destructor)) static void releaseWorkers() {
  while (Worker *worker = idleWorkers) {
    idleWorkers = worker->next;
    worker->release();
    releasePages(worker, sizeof(Worker));
  }
}

//===----------------------------------------------------------------------===//
// Called by kernels
//===----------------------------------------------------------------------===//

extern "C" {

__attribute__((visibility("hidden"))) void spmd_emulation_launch(Kernel *kernel, void *const *args,
                                                                 const int64_t *coords, int64_t begin, int64_t end) {
  lock.lock();
  bool isStopped = hasError;
  lock.unlock();
  if (isStopped)
    return;
  Worker *worker = takeWorker();
  bool isDone = worker && worker->run(*kernel, settings, args, coords, begin, end);
  lock.lock();
  if (isDone) {
    kernel->launches += begin == 0;
    kernel->blocks += end - begin;
    numBlocks += end - begin;
    numThreads += (end - begin) * kernel->blockSize;
  } else if (!hasError) {
    hasError = true;
    failedArguments = args;
    firstError.clear();
    firstError << (worker ? worker->message.get() : "no memory to emulate a kernel");
  }
  if (worker) {
    worker->next = idleWorkers;
    idleWorkers = worker;
  }
  lock.unlock();
}

__attribute__((visibility("hidden"))) void spmd_emulation_barrier(Thread *thread, int32_t op) {
  thread->worker->barrier(*thread, op);
}

__attribute__((visibility("hidden"))) uint64_t spmd_emulation_shuffle(Thread *thread, uint64_t value, int32_t offset,
                                                                      int32_t width, int32_t mode, int32_t op) {
  return thread->worker->shuffle(*thread, value, offset, width, mode, op);
}

/// ldmatrix: four words of the warp's matrices, of which this lane names the row.
__attribute__((visibility("hidden"))) void spmd_emulation_load_matrices(Thread *thread, const void *row,
                                                                        uint32_t *words, bool transposed, int32_t op) {
  WarpOp what = transposed ? WarpOp::LoadTransposed : WarpOp::LoadMatrix;
  thread->worker->matrix(*thread, what, row, words, op);
}

/// mma.sync: ten words, of which the last four, the sum, are replaced.
__attribute__((visibility("hidden"))) void spmd_emulation_multiply(Thread *thread, uint32_t *words, bool isF16,
                                                                   int32_t op) {
  thread->worker->matrix(*thread, isF16 ? WarpOp::MultiplyF16 : WarpOp::MultiplyBF16, nullptr, words, op);
}

/// Whether the latest shuffle of the thread had a lane to read.
__attribute__((visibility("hidden"))) bool spmd_emulation_shuffle_valid(Thread *thread) { return thread->isValid; }

__attribute__((visibility("hidden"))) void *spmd_emulation_load(Thread *thread, uint64_t pointer, int32_t op) {
  return thread->worker->access(*thread, pointer, op, /*isStore=*/false);
}

__attribute__((visibility("hidden"))) void *spmd_emulation_store(Thread *thread, uint64_t pointer, int32_t op) {
  return thread->worker->access(*thread, pointer, op, /*isStore=*/true);
}

__attribute__((visibility("hidden"))) uint64_t spmd_emulation_local(Thread *thread, void *array, int64_t bytes) {
  return thread->worker->addLocal(*thread, array, bytes);
}

//===----------------------------------------------------------------------===//
// Called by whoever loads the object
//===----------------------------------------------------------------------===//

__attribute__((visibility("default"))) int32_t spmd_emulation_configure(int32_t checked, int32_t schedule,
                                                                        uint64_t seed) {
  if (schedule < SPMD_SCHEDULE_FORWARD || schedule > SPMD_SCHEDULE_WARP_GREEDY)
    return -1;
  settings = {checked != 0, schedule, seed};
  return 0;
}

__attribute__((visibility("default"))) const char *spmd_emulation_error() {
  lock.lock();
  const char *message = hasError ? firstError.get() : nullptr;
  lock.unlock();
  return message;
}

__attribute__((visibility("default"))) void *const *spmd_emulation_failed_arguments() {
  lock.lock();
  void *const *arguments = failedArguments;
  lock.unlock();
  return arguments;
}

__attribute__((visibility("default"))) void spmd_emulation_counts(SpmdEmulationCounts *counts) {
  lock.lock();
  *counts = {0, 0, numBlocks, numThreads};
  for (const Kernel *kernel = __start_spmd_kernels; kernel != __stop_spmd_kernels; ++kernel) {
    counts->kernels += kernel->blocks > 0;
    counts->launches += kernel->launches;
  }
  lock.unlock();
}

__attribute__((visibility("default"))) void spmd_emulation_reset() {
  lock.lock();
  hasError = false;
  numBlocks = numThreads = 0;
  for (Kernel *kernel = __start_spmd_kernels; kernel != __stop_spmd_kernels; ++kernel)
    kernel->launches = kernel->blocks = 0;
  lock.unlock();
}

} // extern "C"
