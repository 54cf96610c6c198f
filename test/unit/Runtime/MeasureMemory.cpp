//===- MeasureMemory.cpp - Allocations and resident memory of a run -------===//
//
// spmd-measure-memory ARTIFACT: runs three steps on the first recorded batch
// and prints what steps 2 and 3 allocated from the heap, the bytes of the
// arenas, and how much resident memory grew from before the load to step 3.
//
//===----------------------------------------------------------------------===//

#include "AllocationCounter.h"
#include "spmd/Runtime/Host/HostBackend.h"
#include "spmd/Runtime/Train/Trainer.h"
#include "tools/spmd-run/Reference.h"

#include <cstdio>
#include <unistd.h>

using namespace spmd::runtime;

/// Bytes of physical memory that belong to this process alone or to files.
static int64_t residentBytes() {
  long long total = 0, resident = 0;
  std::FILE *file = std::fopen("/proc/self/statm", "r");
  if (!file || std::fscanf(file, "%lld %lld", &total, &resident) != 2)
    resident = 0;
  if (file)
    std::fclose(file);
  return resident * ::sysconf(_SC_PAGESIZE);
}

static int fail(const Status &status) {
  std::fprintf(stderr, "spmd-measure-memory: error: %s\n", status.message.c_str());
  return static_cast<int>(status.code);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: spmd-measure-memory ARTIFACT\n");
    return 2;
  }
  registerHost();
  int64_t before = residentBytes();
  Expected<std::unique_ptr<Trainer>> loaded = Trainer::load(argv[1], {});
  if (!loaded)
    return fail(loaded.error());
  Trainer &trainer = **loaded;
  Expected<Reference> reference =
      Reference::open(trainer.artifact().pathOf("reference.safetensors"), trainer.manifest());
  if (!reference)
    return fail(reference.error());
  std::vector<HostTensor> batch = reference->batch(0);

  int64_t allocations[3];
  for (int64_t &count : allocations) {
    int64_t start = countAllocations();
    if (Status status = trainer.step(batch.data(), batch.size()); !status.ok())
      return fail(status);
    count = countAllocations() - start;
  }
  int64_t arenas = trainer.manifest().arenaBytes * trainer.manifest().ranks;
  std::printf("allocations in steps 2 and 3: %lld\n", static_cast<long long>(allocations[1] + allocations[2]));
  std::printf("arenas: %lld bytes\n", static_cast<long long>(arenas));
  std::printf("resident beyond the arenas: %lld bytes\n", static_cast<long long>(residentBytes() - before - arenas));
  return 0;
}
