//===- RankProgram.h - A plan, resolved for one rank --------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CUDA_RANKPROGRAM_H
#define SPMD_LIB_RUNTIME_CUDA_RANKPROGRAM_H

#include "CudaExecutor.h"
#include "Nvtx.h"
#include "StepRing.h"
#include "spmd/Runtime/Core/HappensBefore.h"
#include "spmd/Runtime/Train/FiniteWatch.h"
#include "spmd/Runtime/Train/Profile.h"

#include <atomic>

namespace spmd::runtime::cuda {

/// The commands of one rank with addresses, kernels and events; and the graph that they become.
class RankProgram {
public:
  /// `calls` by command; `groups` by communicator, null where none is used.
  static Expected<std::unique_ptr<RankProgram>> make(const CudaCode &code, CudaMemory &memory, int64_t rank,
                                                     const std::vector<Collective> &calls,
                                                     const std::vector<std::unique_ptr<CommunicatorGroup>> &groups,
                                                     bool isTimed);
  ~RankProgram();

  /// From now on issue() waits for every command and looks at what it wrote; `finite` outlives this.
  Status watch(FiniteWatch &finite);

  /// Issues the commands to the streams, after all that the main stream has. The fault, if it is this rank's, happens
  /// on the way.
  Status issue(const Fault &fault, const AbortState &abort);
  /// Makes the graph of them; nothing runs.
  Status capture();
  Status launch();
  /// Says on the main stream that a step ends here, and brings to the host what it gives ([Note: ring]).
  Status end(uint64_t step);

  /// kSuccess, kNotReady or an error: of one of the last steps.
  Result query(uint64_t step) const { return ring.query(step); }
  /// Copies bytes of what a step gave, one of the last, which is over.
  Status readBack(uint64_t step, int64_t offset, void *destination, int64_t bytes) const;
  /// Whether what steps give is brought to the host.
  bool keepsOutputs() const { return ring.block().bytes > 0; }
  /// The command that the host is issuing; -1: none.
  int32_t issuing() const { return current.load(); }

  /// How far a collective is in the last step that was issued: what a device says of what runs on it.
  enum class Reached { Nothing, Begin, End };
  struct CollectiveState {
    int32_t id = 0;
    Reached reached = Reached::Nothing;
  };
  /// All of them, in the order of the plan.
  std::vector<CollectiveState> collectives() const;
  /// Where the streams stand; `isOver` is whether all that was issued is done.
  RankPosition position(bool isOver) const;

  /// Whether steps look at row numbers, which is for the host to do when a step is over.
  bool checksIndices() const;
  /// Looks at those of the last step, which is done or has failed; `status` is how: a row number that is out of range
  /// is the cause of what comes after it.
  Status checkIndices(Status status) const;

  /// Notes when the commands of the last step ran, which is done; the step began at `begin` of Profile::now().
  Status record(Profile &profile, int64_t begin) const;

  const Gpu &gpu() const { return *device; }
  int64_t rank() const { return number; }

private:
  struct Item {
    const Command *command = nullptr;
    int32_t id = 0;
    std::vector<Address> addresses;
    std::vector<void *> pointers;
    Function kernel = nullptr;
    LaunchConfig config = {};
    std::vector<uint64_t> values;
    std::vector<void *> parameters;
    std::unique_ptr<CublasGemm> gemm;
    const Collective *call = nullptr;
    Communicator *communicator = nullptr;
    Event awaited = nullptr; ///< of a wait
    OwnEvent event;          ///< recorded after it, where something waits for it
    OwnEvent begun, done;    ///< of a collective: recorded whenever it begins and has run, in a graph, too
    OwnEvent begin, end;     ///< timed
    OwnPinned ids;           ///< of check_index: what it has looked at
  };

  RankProgram(const CudaCode &code, CudaMemory &memory, int64_t rank)
      : code(code), memory(memory), device(memory.gpuOf(rank)), number(rank), order(code.artifact.plan),
        ranges(Profiler::attached(), code.artifact.manifest, code.artifact.plan) {}
  Status resolve(const std::vector<Collective> &calls, const std::vector<std::unique_ptr<CommunicatorGroup>> &groups,
                 bool isTimed);
  Status makeStreams();
  Status resolveKernel(Item &item, const std::string &symbol, const CudaKernels &kernels,
                       const std::vector<int64_t> &coordinates);
  Status issueAll(const Fault &fault, const AbortState *abort, bool isCapturing);
  Status issueItem(Item &item, bool isCapturing);
  /// The item, with what is recorded around it.
  Status issueRecorded(Item &item, const Fault &fault, const AbortState *abort, bool isCapturing);
  /// Waits for an item, and brings what it wrote to the host.
  Status lookAt(const Item &item);
  Status inject(const Fault &fault, const Item &item, const AbortState *abort, bool &skips);
  Status fork();
  Status joinStreams();
  StreamHandle streamOf(const Item &item) const {
    return streams[static_cast<size_t>(item.command->stream)].stream->get();
  }

  const CudaCode &code;
  CudaMemory &memory;
  std::shared_ptr<const Gpu> device;
  int64_t number;
  HappensBefore order;
  PlanRanges ranges;
  std::unique_ptr<GemmContext> context;
  /// A stream of the plan; of one without commands the handle is null.
  struct PlanStream {
    std::unique_ptr<CudaStream> stream;
    bool isForked = false; ///< it begins after the main stream has come to the step
    OwnEvent joined;       ///< the main stream waits for its end; null where what it waits for says so already
  };
  std::vector<PlanStream> streams;
  std::vector<Item> items;
  OwnEvent forked, base;
  StepRing ring;
  GraphExec graph = nullptr;
  FiniteWatch *finite = nullptr;
  OwnPinned seen; ///< as large as what any command writes
  std::atomic<int32_t> current{-1};
  std::atomic<bool> isIssued{false}; ///< a step was
};

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_RANKPROGRAM_H
