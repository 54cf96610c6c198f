//===- Manifest.h - manifest.json of an artifact -----------------*- C++ -*-===//
//
// What an artifact says about itself: mesh, arena, shard units, and where each
// persistent tensor, batch input, hyper-parameter and output lies in a rank's
// arena. docs/artifact-format.md describes every field.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_MANIFEST_H
#define SPMD_RUNTIME_CORE_MANIFEST_H

#include "spmd/Runtime/Core/DType.h"
#include "spmd/Runtime/Core/RankGroups.h"
#include "spmd/Runtime/Core/Status.h"
#include "spmd/Runtime/Core/Values.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spmd::runtime {

/// How a dim is cut over the ranks: it is seen as [pre][total], rank r has
/// [pre][r*chunk, (r+1)*chunk).
struct DimSplit {
  std::optional<int64_t> dim; ///< absent: every rank has the whole tensor
  int64_t pre = 1;
  int64_t chunk = 0;
};

/// One parameter inside a unit's flat buffer; offsets count elements.
struct Segment {
  std::string name;
  std::vector<std::string> aliases; ///< further names of a tied parameter
  std::vector<int64_t> shape;       ///< of what a rank of the tensor axis has
  int64_t group = 0; ///< optimizer parameter group
  int64_t offset = 0;
  int64_t numel = 0;
  bool trainable = true;
  std::vector<int64_t> wholeShape = {}; ///< of the parameter, where the tensor axis cuts it
  DimSplit tensor = {};                 ///< how it does

  /// The parameter's own shape.
  const std::vector<int64_t> &parameterShape() const { return tensor.dim ? wholeShape : shape; }
};

/// Parameters that are gathered and reduced together as one flat buffer.
struct Unit {
  std::string name;
  std::vector<std::string> modules;
  DType dtype = DType::F32;
  int64_t padded = 0; ///< elements of the flat buffer
  int64_t chunk = 0;  ///< elements a rank owns; == padded when replicated
  /// Along which axes of the mesh it is cut; none: over all ranks, or not at all. Along the others ranks have the same.
  std::vector<std::string> axes;
  std::vector<Segment> segments;
  /// Every rank computes the gradients in full: there is nothing to reduce.
  bool wholeGradient = false;

  bool isSharded() const { return chunk != padded; }
  bool isTrainable() const;
};

/// A persistent tensor of the state region.
struct StateEntry {
  enum class Kind {
    Shard,      ///< this rank's chunk of a unit's flat buffer
    Table,      ///< one entry per segment of a unit, the same on all ranks
    Replicated, ///< a whole tensor, the same on all ranks
  };
  Kind kind = Kind::Shard;
  std::string unit;  ///< Shard and Table
  std::string name;  ///< Replicated
  std::string state; ///< "param", "buffer", "constant", "rng", or optimizer state
  DType dtype = DType::F32;
  int64_t offset = 0; ///< bytes in the arena
  int64_t numel = 0;
  std::vector<int64_t> shape;       ///< Replicated
  std::vector<std::string> aliases; ///< Replicated
  std::optional<double> init;       ///< value when no file has the tensor
  bool persistent = true;           ///< part of the saved state dict
  bool isSum = false;               ///< each rank (of a Shard: along the axes that do not cut it) has a summand of it
  std::optional<int64_t> buffer;    ///< plan buffer that holds it

  int64_t bytes() const { return bytesOf(numel, dtype); }
};

/// "shard", "table", "replicated".
const char *nameOf(StateEntry::Kind kind);

struct BatchInput {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape; ///< global
  DimSplit split;
  std::vector<int64_t> localShape;
  int64_t offset = 0;
  std::optional<int64_t> indexBound;  ///< values must be in [0, bound)
  std::optional<int64_t> ignoreIndex; ///< one further value that is allowed
  std::optional<int64_t> buffer;

  int64_t localBytes() const { return bytesOf(numElements(localShape), dtype); }
};

struct HyperParameter {
  std::string name;
  int64_t group = 0;
  DType dtype = DType::F64;
  int64_t offset = 0;
  double value = 0;
  std::optional<int64_t> buffer;
};

struct Output {
  Binding::Kind kind = Binding::Kind::Output; ///< or Loss
  std::string path; ///< where it is in the step's result
  DType dtype = DType::F32;
  std::vector<int64_t> shape; ///< global
  DimSplit split;
  std::vector<int64_t> localShape;
  bool isVarying = false; ///< every rank has a value of its own
  int64_t offset = 0;
  std::optional<int64_t> buffer;

  int64_t localBytes() const { return bytesOf(numElements(localShape), dtype); }
};

struct ProgramEntry {
  std::string name;
  std::string plan;      ///< file name
  std::string traceHash; ///< 16 hex digits
  std::string hash;      ///< of the plan file; empty: not stated
};

/// Kernels compiled for one level of a CPU's instruction set, or for one GPU.
struct KernelFile {
  std::string cpu;  ///< "x86-64-v3": a shared object; empty for cubins
  std::string chip; ///< "sm_90": the GPU, also of kernels that are emulated on the CPU
  std::string file;
  std::string hash; ///< of the file; empty: not stated
  std::string ptx;  ///< file with the cubins' kernels for newer GPUs
  std::string ptxHash;
};

/// Matrix products of a kernel: their floating-point operations, and the dtype of their operands.
struct KernelProducts {
  int64_t flops = 0;
  DType dtype = DType::F32;
};

/// What a generated kernel is, on any target.
struct KernelInfo {
  std::string kernel;
  std::string kind;                  ///< for people: "row reduction"
  int64_t requiredBytes = 0;         ///< read and written when every operand is read once
  std::optional<int64_t> movedBytes; ///< on the CPU, when known; on GPUs the launch has them
  /// The matrix products that it computes; absent of a kernel that computes none, and of an attention, whose command has
  /// its shape.
  std::optional<KernelProducts> products = {};
};

/// What a kernel of the user's takes: a tensor, by which of the command's references it is, or a number.
struct LaunchParameter {
  int64_t reference = -1;
  DType dtype = DType::I64;
  uint64_t bits = 0; ///< of the number, in its dtype
};

/// How a kernel of the user's is launched.
struct UserLaunch {
  std::string function; ///< in its cubin
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::vector<LaunchParameter> parameters;
};

/// How a kernel runs on one GPU.
struct KernelLaunch {
  std::string kernel, chip;
  int64_t blocks = 1, threads = 1;   ///< of the grid, of a block
  int64_t dynamicSharedBytes = 0;    ///< of a block, asked for at launch
  int64_t pointers = 0;              ///< arguments: operands, then results
  int64_t coordinates = 0;           ///< 64-bit integers after them
  std::optional<int64_t> movedBytes; ///< in global memory, when known
  /// Where its cubin lies in the chip's file; 0 bytes: it is emulated, and the rest is not known.
  int64_t offset = 0, bytes = 0;
  int64_t registers = 0, staticSharedBytes = 0, localBytes = 0;
  int64_t spillStoreBytes = 0, spillLoadBytes = 0, barriers = 0;
  std::optional<UserLaunch> user; ///< blocks and threads are those of its grid and of a block of it
};

/// Memory that is not in the arena.
struct OutsideArena {
  std::string name;
  std::optional<int64_t> bytes; ///< absent: the library decides
};

/// What every rank computes whole, though it is no parameter. Fused into its
/// readers it takes no memory.
struct ReplicatedValue {
  std::string op, location;
  int64_t bytes = 0;
};

/// Of a library: "12.4".
struct LibraryVersion {
  int64_t major = 0, minor = 0;

  bool operator<(const LibraryVersion &other) const {
    return major != other.major ? major < other.major : minor < other.minor;
  }
};
std::string toText(LibraryVersion version);

/// The oldest versions of libraries that an artifact runs with; none of those that it does not use.
struct NeededLibraries {
  std::optional<LibraryVersion> driver; ///< CUDA's, by the version of CUDA that it is of
  std::optional<LibraryVersion> cublasLt, nccl;
};

struct Manifest {
  std::string compiler, step, target, mode, policy, view;
  std::vector<MeshAxis> mesh;
  int64_t ranks = 1;
  int64_t stateBytes = 0, transientBytes = 0, arenaBytes = 0;
  std::map<std::string, int64_t> classBytes;
  std::vector<ProgramEntry> programs; ///< what follows of arena, inputs and outputs is the first one's
  /// Of each further program: a manifest whose inputs, outputs, values and transient bytes are its own, and all else is
  /// that of the first.
  std::vector<Manifest> others;
  std::vector<KernelFile> kernels;
  std::vector<KernelInfo> kernelTable;
  std::vector<KernelLaunch> launches;
  std::vector<Unit> units;
  std::vector<StateEntry> state;
  std::vector<BatchInput> batch;
  std::vector<HyperParameter> hyper;
  std::vector<Output> outputs;
  std::string resultTree;
  std::vector<OutsideArena> outsideArena;
  std::optional<NeededLibraries> needs; ///< of targets that load libraries
  std::vector<ReplicatedValue> replicated;
  std::vector<std::string> zeroGradient; ///< analytically zero gradients
  /// What the step computes; absent only while a plan without a program that it comes from is checked.
  std::optional<ValueTable> values;

  const Unit *findUnit(const std::string &name) const;

  /// Whether gradients of the unit outlive the step as chunks that are sums of what ranks along the other axes have.
  bool keepsSums(const Unit &unit) const;

  /// What runs kernel `kernel` on `chip`, or null.
  const KernelLaunch *findLaunch(const std::string &kernel, const std::string &chip) const;

  /// The ranks that meet along some axes of the mesh; all where none are named.
  RankGroups groupsAlong(const std::vector<std::string> &axes) const { return RankGroups::along(mesh, axes); }

  /// Mesh coordinates of a rank; the last axis varies fastest.
  std::vector<int64_t> coordinatesOf(int64_t rank) const;

  /// Ranks along the tensor axis, which have the same rows of the batch; 1 without one.
  int64_t tensorRanks() const { return !mesh.empty() && mesh.back().isTensor ? mesh.back().size : 1; }
  /// Over how many ranks the batch is cut, and which part of it a rank has.
  int64_t dataRanks() const { return ranks / tensorRanks(); }
  int64_t dataRankOf(int64_t rank) const { return rank / tensorRanks(); }
  int64_t tensorRankOf(int64_t rank) const { return rank % tensorRanks(); }
};

/// What the table of values calls an entry, whose bytes the entry says.
Binding bindingOf(const StateEntry &entry);
Binding bindingOf(const BatchInput &input);
Binding bindingOf(const HyperParameter &hyper);
Binding bindingOf(const Output &output);

/// The version of the JSON form that is written, and the only one that is read.
constexpr int32_t kManifestVersion = 6;

/// The JSON form: a line per entry of a list. parseManifest reads it back.
std::string writeManifest(const Manifest &manifest);

/// Reads and validates a manifest; `name` is what errors call the text.
Expected<Manifest> parseManifest(const std::string &name, std::string_view text);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_MANIFEST_H
