//===- RankProgram.h - A plan, resolved for one rank --------------*- C++ -*-===//
//
// [Note: watched] What a device is doing is known of collectives alone, which record
// an event when they begin and one when they have run. Steps run one after the other,
// but launching a graph makes its events those of the launch: of a step that hangs
// nothing would be known any more once the next one is launched. So there are two sets
// of events, and a graph for each, of which steps take turns, and no more than two
// steps are in flight: while one runs the next is ready, which is all that a device
// needs.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_CUDA_RANKPROGRAM_H
#define SPMD_LIB_RUNTIME_CUDA_RANKPROGRAM_H

#include "CudaExecutor.h"
#include "Nvtx.h"
#include "StepRing.h"
#include "spmd/Runtime/Core/HappensBefore.h"
#include "spmd/Runtime/Train/FiniteWatch.h"
#include "spmd/Runtime/Train/Profile.h"

#include <array>
#include <atomic>

namespace spmd::runtime::cuda {

/// The commands of one rank with addresses, kernels and events; and the graphs that they become.
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

  /// How many steps may be issued before the first of them is done: so many are told apart ([Note: ring] and [Note:
  /// watched]).
  uint64_t mostInFlight() const { return numSets == 1 ? StepRing::kSteps : kWatched; }

  /// Issues the commands to the streams, after all that the main stream has. The fault, if it is this rank's, happens
  /// on the way.
  Status issue(uint64_t step, const Fault &fault, const AbortState &abort);
  /// Makes the graphs of them; nothing runs.
  Status capture();
  Status launch(uint64_t step);
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

  /// How far a collective is in a step: what a device says of what runs on it.
  enum class Reached { Nothing, Begin, End };
  struct CollectiveState {
    int32_t id = 0;
    Reached reached = Reached::Nothing;
  };
  /// All of them, in the order of the plan: of the step that runs, or that was issued last.
  std::vector<CollectiveState> collectives(uint64_t step) const;
  /// Where the streams stand in such a step; `isOver` is whether that is done.
  RankPosition position(uint64_t step, bool isOver) const;

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
  static constexpr uint64_t kWatched = 2;
  /// What collectives record in a step: events of one of kWatched sets; in a graph or not.
  struct Recording {
    size_t set = 0;
    bool isCapturing = false;
  };
  struct Item {
    const Command *command = nullptr;
    int32_t id = 0;
    std::vector<Address> addresses;
    std::vector<void *> pointers;
    Function kernel = nullptr;
    LaunchConfig config = {};
    std::vector<uint64_t> values;
    std::vector<void *> parameters;
    /// Issued one after the other [Note: parts of GEMMs].
    std::vector<std::unique_ptr<CublasGemm>> gemms;
    const Collective *call = nullptr;
    Communicator *communicator = nullptr;
    Event awaited = nullptr; ///< of a wait
    OwnEvent event;          ///< recorded after it, where something waits for it
    std::array<OwnEvent, kWatched> begun, done; ///< of a collective: recorded when it begins and has run, by set
    OwnEvent begin, end;     ///< timed
    OwnPinned ids;           ///< of check_index: what it has looked at
  };

  RankProgram(const CudaCode &code, CudaMemory &memory, int64_t rank)
      : code(code), memory(memory), device(memory.gpuOf(rank)), number(rank), order(code.artifact.plan),
        ranges(Profiler::attached(), code.artifact.manifest, code.artifact.plan) {}
  Status resolve(const std::vector<Collective> &calls, const std::vector<std::unique_ptr<CommunicatorGroup>> &groups,
                 bool isTimed);
  Status makeStreams();
  Status makeGemms(Item &item);
  Status resolveKernel(Item &item, const std::string &symbol, const CudaKernels &kernels,
                       const std::vector<int64_t> &coordinates);
  Status issueAll(const Fault &fault, const AbortState *abort, Recording recording);
  Status issueItem(Item &item, Recording recording);
  /// The item, with what is recorded around it.
  Status issueRecorded(Item &item, const Fault &fault, const AbortState *abort, Recording recording);
  /// A graph that records one set.
  Status captureOne(size_t set);
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
  size_t numSets = 1;                          ///< of events and graphs: kWatched where the plan has collectives
  std::array<GraphExec, kWatched> graphs = {}; ///< by set
  FiniteWatch *finite = nullptr;
  OwnPinned seen; ///< as large as what any command writes
  std::atomic<int64_t> latest{-1};  ///< the step that was issued last, or is being issued
  std::atomic<int32_t> current{-1}; ///< what the host issues of it
};

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_RANKPROGRAM_H
