//===- Certificate.cpp - The rules, in the order of Certificate.h ---------===//

#include "spmd/Runtime/Core/Certificate.h"
#include "CertificateInFlight.h"
#include "CertificateMemory.h"
#include "CertificateOrigins.h"
#include "CertificateValues.h"
#include "StridedRuns.h"
#include "spmd/Runtime/Core/HappensBefore.h"

#include <algorithm>

using namespace spmd::runtime;

namespace {

/// Planners round the arena up to at most this.
constexpr int64_t kArenaAlignment = 4096;

/// Rules 1, 2, 3 and 7: what can be said of a command without the others.
class StructureChecker {
public:
  StructureChecker(const Manifest &manifest, const Plan &plan) : manifest(manifest), plan(plan) {
    for (int64_t rank = 0; rank < manifest.ranks; ++rank)
      coordinates.push_back(manifest.coordinatesOf(rank));
    for (size_t comm = 0; comm < plan.communicators.size(); ++comm)
      groups.push_back(manifest.groupsAlong(plan.axesOf(static_cast<int32_t>(comm))));
  }

  Status check();

private:
  Status checkBuffer(const Buffer &buffer) const;
  Status checkRef(int32_t id, const Ref &ref) const;
  Status checkOperands(int32_t id) const;
  // What the references of a command must be, by its kind.
  Status checkRefs(int32_t id, const std::vector<Ref> &refs, const KernelCommand &kernel) const;
  Status checkRefs(int32_t id, const std::vector<Ref> &refs, const AttentionCommand &attention) const;
  Status checkRefs(int32_t id, const std::vector<Ref> &refs, const GemmCommand &gemm) const;
  Status checkRefs(int32_t id, const std::vector<Ref> &refs, const CollectiveCommand &collective) const;
  Status checkRefs(int32_t id, const std::vector<Ref> &refs, const WaitCommand &wait) const;
  Status checkRefs(int32_t id, const std::vector<Ref> &refs, const CopyCommand &copy) const;
  Status checkRefs(int32_t id, const std::vector<Ref> &refs, const FillCommand &fill) const;
  Status checkRefs(int32_t id, const std::vector<Ref> &refs, const CheckIndexCommand &check) const;
  Status checkMoved(int32_t id, const std::vector<Ref> &refs, int64_t bytes) const;
  Status checkDisjoint(int32_t id, const Ref &a, const Ref &b) const;
  Status checkSameBytes(int32_t id, const Ref &ref) const;
  Status checkInPlace(int32_t id, const RankGroups &ranks, const Ref &whole, const Ref &part) const;
  Status checkAxes() const;
  Status checkWait(int32_t id, const WaitCommand &wait) const;
  struct Reduction;
  Status checkReduction(int32_t id, const CollectiveCommand &reduce, const Unit &unit, Reduction &done) const;
  Status checkReductions() const;

  Status error(int32_t id, int rule, const std::string &message) const {
    return certificateError(plan, id, rule, message);
  }
  int64_t begin(const Ref &ref, const std::vector<int64_t> &at) const {
    return plan.buffers[static_cast<size_t>(ref.buffer)].offset + ref.offsetAt(at);
  }

  const Manifest &manifest;
  const Plan &plan;
  std::vector<std::vector<int64_t>> coordinates; ///< per rank
  std::vector<RankGroups> groups;                ///< per communicator
};

} // namespace

Status spmd::runtime::certificateError(const Plan &plan, int32_t id, int rule, const std::string &message) {
  const Command &command = plan.commands[static_cast<size_t>(id)];
  Status status = Status::badInput("certificate rule " + std::to_string(rule) + ": command " + std::to_string(id) +
                                   " (" + command.describe() + "): " + message);
  status.command = id;
  status.location = command.location;
  return status;
}

std::string spmd::runtime::describeCommand(const Plan &plan, int32_t id) {
  const Command &command = plan.commands[static_cast<size_t>(id)];
  std::string text = "command " + std::to_string(id) + " (" + command.describe();
  if (!command.location.empty())
    text += " at " + command.location;
  return text + ")";
}

Status StructureChecker::checkBuffer(const Buffer &buffer) const {
  auto fail = [&](const std::string &message) {
    return Status::badInput("certificate rule 1: buffer " + std::to_string(buffer.id) + " ('" + buffer.name +
                            "'): " + message);
  };
  int64_t end;
  if (__builtin_add_overflow(buffer.offset, buffer.bytes, &end) || end > manifest.arenaBytes)
    return fail("bytes [" + std::to_string(buffer.offset) + ", +" + std::to_string(buffer.bytes) +
                ") are outside the arena of " + std::to_string(manifest.arenaBytes) + " bytes");
  if (buffer.state && end > manifest.stateBytes)
    return fail("a state buffer outside the state region of " + std::to_string(manifest.stateBytes) + " bytes");
  if (!buffer.state && buffer.bytes > 0 && buffer.offset < manifest.stateBytes)
    return fail("not a state buffer, but in the state region");
  if (buffer.offset % buffer.alignment != 0)
    return fail("offset " + std::to_string(buffer.offset) + " is no multiple of its alignment, " +
                std::to_string(buffer.alignment));
  return Status::success();
}

Status StructureChecker::checkRef(int32_t id, const Ref &ref) const {
  const Buffer &buffer = plan.buffers[static_cast<size_t>(ref.buffer)];
  if (ref.coord.size() > manifest.mesh.size())
    return error(id, 1,
                 "a reference has " + std::to_string(ref.coord.size()) + " coordinates, the mesh " +
                     std::to_string(manifest.mesh.size()) + " axes");
  // An affine offset takes its extremes at corners of the mesh.
  __int128 least = ref.offset, most = ref.offset;
  for (size_t axis = 0; axis < ref.coord.size(); ++axis) {
    __int128 reach = static_cast<__int128>(ref.coord[axis]) * (manifest.mesh[axis].size - 1);
    (reach < 0 ? least : most) += reach;
  }
  if (least < 0 || most + ref.bytes > buffer.bytes)
    return error(id, 1,
                 "a reference to bytes " + std::to_string(ref.offset) + " + " + std::to_string(ref.bytes) +
                     " leaves buffer " + std::to_string(buffer.id) + " ('" + buffer.name + "') of " +
                     std::to_string(buffer.bytes) + " bytes on some rank");
  return Status::success();
}

/// `a` and `b` share no byte on any rank.
Status StructureChecker::checkDisjoint(int32_t id, const Ref &a, const Ref &b) const {
  for (const std::vector<int64_t> &at : coordinates)
    if (begin(a, at) < begin(b, at) + b.bytes && begin(b, at) < begin(a, at) + a.bytes)
      return error(id, 2, "operands overlap");
  return Status::success();
}

/// `ref` has the same bytes of the arena on every rank, so that they can be registered with a communicator once.
Status StructureChecker::checkSameBytes(int32_t id, const Ref &ref) const {
  for (size_t rank = 1; rank < coordinates.size(); ++rank)
    if (begin(ref, coordinates[rank]) != begin(ref, coordinates[0]))
      return error(id, 3, "what is exchanged lies at other bytes on rank " + std::to_string(rank) + " than on rank 0");
  return Status::success();
}

/// `part` is this rank's chunk of `whole`, or apart from it and at the same bytes on every rank.
Status StructureChecker::checkInPlace(int32_t id, const RankGroups &ranks, const Ref &whole, const Ref &part) const {
  size_t inPlace = 0;
  for (size_t rank = 0; rank < coordinates.size(); ++rank) {
    int64_t wholeAt = begin(whole, coordinates[rank]);
    int64_t partAt = begin(part, coordinates[rank]);
    bool overlaps = wholeAt < partAt + part.bytes && partAt < wholeAt + whole.bytes;
    inPlace += overlaps;
    if (overlaps && partAt != wholeAt + ranks.positionOf(static_cast<int64_t>(rank)) * part.bytes)
      return error(id, 2, "send and receive overlap, but not at the chunk of rank " + std::to_string(rank));
  }
  return inPlace == coordinates.size() ? Status::success() : checkSameBytes(id, part);
}

static std::string textOf(__int128 bytes) {
  constexpr int64_t kMost = int64_t(1) << 62;
  return bytes > kMost ? "more than " + std::to_string(kMost) : std::to_string(static_cast<int64_t>(bytes));
}

/// A product of sizes, or what is more than any buffer has: three sizes of 2^50 are beyond 128 bits.
static __int128 productOf(std::initializer_list<int64_t> sizes) {
  constexpr __int128 kMost = static_cast<__int128>(1) << 70;
  __int128 product = 1;
  for (int64_t size : sizes)
    product = std::min(product * size, kMost);
  return product;
}

Status StructureChecker::checkRefs(int32_t id, const std::vector<Ref> &refs, const AttentionCommand &attention) const {
  const AttentionShape &s = attention.shape;
  auto needs = [&](const char *name, const Ref &ref, __int128 bytes) -> Status {
    if (bytes <= ref.bytes)
      return Status::success();
    return error(id, 2,
                 std::string(name) + " needs " + textOf(bytes) + " bytes, its reference has " +
                     std::to_string(ref.bytes));
  };
  auto checkView = [&](const char *name, const Ref &ref, const AttentionView &view, int64_t heads, int64_t rows,
                       int64_t columns) {
    __int128 elements = static_cast<__int128>(s.batch - 1) * view.batch + static_cast<__int128>(heads - 1) * view.head +
                        static_cast<__int128>(rows - 1) * view.row + view.offset + columns;
    return needs(name, ref, elements * sizeOf(s.dtype));
  };
  size_t q = attention.q(), gradient = attention.gradient(), next = attention.gradients == 1 ? 0 : 1;
  struct Part {
    const char *name;
    size_t ref;
    const AttentionView &view;
    int64_t heads, rows, columns;
  };
  std::vector<Part> parts = {{"q", q, s.q, s.heads, s.qLen, s.headDim},
                             {"k", q + 1, s.k, s.kvHeads, s.kvLen, s.headDim},
                             {"v", q + 2, s.v, s.kvHeads, s.kvLen, s.vDim},
                             {"out", attention.out(), s.out, s.heads, s.qLen, s.vDim}};
  if (s.isBackward) {
    parts.push_back({"dout", 0, s.dout, s.heads, s.qLen, s.vDim});
    parts.push_back({"dq", gradient, s.dq, s.heads, s.qLen, s.headDim});
    parts.push_back({"dk", gradient + next, s.dk, s.kvHeads, s.kvLen, s.headDim});
    parts.push_back({"dv", gradient + 2 * next, s.dv, s.kvHeads, s.kvLen, s.vDim});
  }
  for (const Part &part : parts)
    if (Status status = checkView(part.name, refs[part.ref], part.view, part.heads, part.rows, part.columns);
        !status.ok())
      return status;
  if (Status status = needs("lse", refs[attention.lse()], productOf({s.batch, s.heads, s.qLen, sizeOf(DType::F32)}));
      !status.ok())
    return status;
  // One for all batches and heads at least.
  if (attention.hasMaskGradient)
    if (Status status =
            needs("mask_gradient", refs[attention.maskGradient()], productOf({s.qLen, s.kvLen, sizeOf(DType::F32)}));
        !status.ok())
      return status;
  // Within a reference nothing is written twice: the gradients may lie in one.
  std::vector<std::pair<const Part *, StridedRuns>> written;
  for (const Part &part : parts) {
    if (part.ref < attention.firstResult())
      continue;
    StridedRuns runs(part.view.offset,
                     {{part.view.batch, s.batch}, {part.view.head, part.heads}, {part.view.row, part.rows}},
                     part.columns);
    if (runs.mayOverlapItself())
      return error(id, 2, std::string("rows of ") + part.name + " overlap");
    for (auto &[before, others] : written)
      if (before->ref == part.ref && others.mayOverlap(runs))
        return error(id, 2, std::string(before->name) + " and " + part.name + " overlap");
    written.emplace_back(&part, std::move(runs));
  }
  for (size_t result = attention.firstResult(); result < refs.size(); ++result)
    for (size_t other = 0; other < result; ++other)
      if (Status status = checkDisjoint(id, refs[other], refs[result]); !status.ok())
        return status;
  return Status::success();
}

Status StructureChecker::checkRefs(int32_t id, const std::vector<Ref> &refs, const GemmCommand &gemm) const {
  const GemmShape &g = gemm.shape;
  auto checkMatrix = [&](const char *name, const Ref &ref, int64_t rows, int64_t columns, int64_t ld,
                         int64_t stride) -> Status {
    if (rows == 0 || columns == 0 || g.batch == 0)
      return Status::success();
    if (ld < columns)
      return error(id, 2,
                   std::string("ld") + name + " " + std::to_string(ld) + " is less than a row of " +
                       std::to_string(columns));
    __int128 needed = (static_cast<__int128>(rows - 1) * ld + columns + static_cast<__int128>(g.batch - 1) * stride) *
                      sizeOf(gemm.dtype);
    if (needed > ref.bytes)
      return error(id, 2,
                   std::string("matrix ") + name + " needs " + textOf(needed) + " bytes, its reference has " +
                       std::to_string(ref.bytes));
    return Status::success();
  };
  if (Status s = checkMatrix("a", refs[0], g.transA ? g.k : g.m, g.transA ? g.m : g.k, g.lda, g.strideA); !s.ok())
    return s;
  if (Status s = checkMatrix("b", refs[1], g.transB ? g.n : g.k, g.transB ? g.k : g.n, g.ldb, g.strideB); !s.ok())
    return s;
  if (Status s = checkMatrix("c", refs[2], g.m, g.n, g.ldc, g.strideC); !s.ok())
    return s;
  // Threads share out the batch.
  if (g.batch > 1 && g.m > 0 && g.n > 0 && g.strideC < static_cast<__int128>(g.m - 1) * g.ldc + g.n)
    return error(id, 2, "stride_c " + std::to_string(g.strideC) + ": matrices of the batch overlap");
  // What is written may overlap nothing that is read.
  for (size_t i = 0; i < refs.size(); ++i)
    if (i != 2)
      if (Status s = checkDisjoint(id, refs[i], refs[2]); !s.ok())
        return s;
  auto partOf = [&](int32_t index) -> const Ref & { return refs[static_cast<size_t>(index)]; };
  if (g.bias >= 0)
    if (Status s = checkMatrix("bias", partOf(g.bias), 1, g.n, g.n, 0); !s.ok())
      return s;
  if (g.residual >= 0)
    if (Status s = checkMatrix("residual", partOf(g.residual), g.m, g.n, g.ldc, g.strideC); !s.ok())
      return s;
  for (int32_t written : {g.readsPreActivation() ? -1 : g.preActivation, g.biasGradient, g.workspace})
    for (int32_t i = 0; i < written; ++i)
      if (Status s = checkDisjoint(id, partOf(i), partOf(written)); !s.ok())
        return s;
  if (g.workspace >= 0) {
    const Ref &workspace = partOf(g.workspace);
    int64_t alignment = plan.buffers[static_cast<size_t>(workspace.buffer)].alignment;
    for (const std::vector<int64_t> &at : coordinates)
      if (begin(workspace, at) % alignment != 0)
        return error(id, 2, "its workspace begins at no multiple of " + std::to_string(alignment));
  }
  if (g.biasGradient >= 0)
    if (Status s =
            checkMatrix("bias_gradient", partOf(g.biasGradient), 1, g.numBiasGradients(), g.numBiasGradients(), 0);
        !s.ok())
      return s;
  if (g.preActivation < 0)
    return Status::success();
  return checkMatrix("pre_activation", partOf(g.preActivation), g.m, g.n, g.ldc, g.strideC);
}

Status StructureChecker::checkRefs(int32_t id, const std::vector<Ref> &refs,
                                   const CollectiveCommand &collective) const {
  int64_t size = sizeOf(collective.dtype);
  auto checkBytes = [&](const char *name, const Ref &ref, __int128 elements) -> Status {
    if (elements * size != ref.bytes)
      return error(id, 2,
                   std::string(name) + " has " + std::to_string(ref.bytes) + " bytes, its count asks for " +
                       std::to_string(static_cast<int64_t>(elements * size)));
    return Status::success();
  };
  if (!collective.unit.empty() && !manifest.findUnit(collective.unit))
    return error(id, 2, "no unit is named '" + collective.unit + "'");
  if (isInPlace(collective.kind)) {
    for (size_t i = 0; i < refs.size(); ++i) {
      if (Status s = checkBytes("a buffer", refs[i], collective.counts[i]); !s.ok())
        return s;
      if (Status s = checkSameBytes(id, refs[i]); !s.ok())
        return s;
      for (size_t j = 0; j < i; ++j)
        if (Status s = checkDisjoint(id, refs[j], refs[i]); !s.ok())
          return s;
    }
    return Status::success();
  }
  const RankGroups &ranks = groups[static_cast<size_t>(collective.communicator)];
  __int128 count = collective.counts[0];
  const char *const names[] = {"send", "recv"};
  const bool isWhole[] = {sendsWhole(collective.kind), receivesWhole(collective.kind)};
  const size_t first = isWhole[0] ? 1 : 0; // parts first
  for (size_t i : {first, 1 - first})
    if (Status s = checkBytes(names[i], refs[i], isWhole[i] ? count * ranks.size() : count); !s.ok())
      return s;
  for (size_t i : {first, 1 - first})
    if (Status s = isWhole[i] ? checkSameBytes(id, refs[i]) : Status::success(); !s.ok())
      return s;
  if (isWhole[0] == isWhole[1])
    return checkDisjoint(id, refs[0], refs[1]);
  return checkInPlace(id, ranks, refs[1 - first], refs[first]);
}

Status StructureChecker::checkRefs(int32_t, const std::vector<Ref> &, const KernelCommand &) const {
  return Status::success(); // rule 9
}

Status StructureChecker::checkRefs(int32_t, const std::vector<Ref> &, const WaitCommand &) const {
  return Status::success();
}

Status StructureChecker::checkMoved(int32_t id, const std::vector<Ref> &refs, int64_t bytes) const {
  for (const Ref &ref : refs)
    if (ref.bytes != bytes)
      return error(id, 2, "moves " + std::to_string(bytes) + " bytes, its reference has " + std::to_string(ref.bytes));
  return Status::success();
}

Status StructureChecker::checkRefs(int32_t id, const std::vector<Ref> &refs, const CopyCommand &copy) const {
  if (Status s = checkMoved(id, refs, copy.bytes); !s.ok())
    return s;
  return checkDisjoint(id, refs[0], refs[1]);
}

Status StructureChecker::checkRefs(int32_t id, const std::vector<Ref> &refs, const FillCommand &fill) const {
  return checkMoved(id, refs, fill.bytes);
}

Status StructureChecker::checkRefs(int32_t id, const std::vector<Ref> &refs, const CheckIndexCommand &check) const {
  if (static_cast<__int128>(check.count) * sizeOf(check.dtype) != refs[0].bytes)
    return error(id, 2,
                 "checks " + std::to_string(check.count) + " integers, its reference has " +
                     std::to_string(refs[0].bytes) + " bytes");
  return Status::success();
}

Status StructureChecker::checkOperands(int32_t id) const {
  const Command &command = plan.commands[static_cast<size_t>(id)];
  for (const Ref &ref : command.refs)
    if (Status s = checkRef(id, ref); !s.ok())
      return s;
  return command.visit([&](const auto &action) { return checkRefs(id, command.refs, action); });
}

Status StructureChecker::checkWait(int32_t id, const WaitCommand &wait) const {
  if (wait.awaited >= id)
    return error(id, 3, "waits for a command that is not before it");
  if (plan.commands[static_cast<size_t>(wait.awaited)].stream == plan.commands[static_cast<size_t>(id)].stream)
    return error(id, 3, "waits for a command of its own stream");
  return Status::success();
}

/// The axes of communicators are axes of the mesh.
Status StructureChecker::checkAxes() const {
  for (const auto &[name, axes] : plan.axes)
    for (const std::string &axis : axes)
      if (std::none_of(manifest.mesh.begin(), manifest.mesh.end(),
                       [&](const MeshAxis &known) { return known.name == axis; }))
        return Status::badInput("certificate rule 3: communicator '" + name + "' connects ranks along '" + axis +
                                "', which is no axis of the mesh");
  return Status::success();
}

/// Over which ranks a unit's gradients have been added up so far, and by whom.
struct StructureChecker::Reduction {
  int32_t last = -1;
  std::vector<std::string> axes; ///< in the order of the mesh
  bool isScattered = false;
};

Status StructureChecker::checkReduction(int32_t id, const CollectiveCommand &reduce, const Unit &unit,
                                        Reduction &done) const {
  std::vector<std::string> axes = plan.axesOf(reduce.communicator);
  if (axes.empty())
    for (const MeshAxis &axis : manifest.mesh)
      axes.push_back(axis.name);
  for (const MeshAxis &axis : manifest.mesh)
    if (axis.isTensor && std::find(axes.begin(), axes.end(), axis.name) != axes.end())
      return error(id, 7,
                   "reduces the gradients of " + unit.name + " along the tensor axis '" + axis.name +
                       "', along which ranks have the same rows");
  for (const std::string &axis : axes)
    if (std::find(done.axes.begin(), done.axes.end(), axis) != done.axes.end())
      return error(id, 7,
                   "the gradients of " + unit.name + " are reduced again" +
                       (manifest.mesh.size() > 1 ? " along '" + axis + "'" : "") + ", first by " +
                       describeCommand(plan, done.last));
  bool isScatter = sendsWhole(reduce.kind);
  if (isScatter && !unit.axes.empty() && axes != unit.axes)
    return error(id, 7, "scatters along other axes than those along which " + unit.name + " is cut");
  done.axes.insert(done.axes.end(), axes.begin(), axes.end());
  done.last = id;
  done.isScattered |= isScatter;
  int64_t elements = reduce.messageBytes() / sizeOf(reduce.dtype);
  // What an earlier step has scattered is added up across as chunks.
  bool isOfState = manifest.keepsSums(unit) && std::none_of(axes.begin(), axes.end(), [&](const std::string &axis) {
                     return std::find(unit.axes.begin(), unit.axes.end(), axis) != unit.axes.end();
                   });
  int64_t wanted = done.isScattered || isOfState ? unit.chunk : unit.padded;
  if (elements != wanted)
    return error(id, 7,
                 "reduces " + std::to_string(elements) + " elements, " + unit.name + " has " + std::to_string(wanted));
  for (ReductionKind kind : reduce.kinds)
    if (kind != ReductionKind::Sum)
      return error(id, 7, std::string("gradients are summed, not reduced by ") + nameOf(kind));
  return Status::success();
}

/// A gradient is added up once along each axis.
Status StructureChecker::checkReductions() const {
  for (const Unit &unit : manifest.units) {
    Reduction done;
    for (size_t i = 0; i < plan.commands.size(); ++i) {
      const auto *collective = plan.commands[i].as<CollectiveCommand>();
      if (!collective || collective->unit != unit.name || !combines(collective->kind))
        continue;
      if (Status s = checkReduction(static_cast<int32_t>(i), *collective, unit, done); !s.ok())
        return s;
    }
    if (!unit.isTrainable() || unit.wholeGradient || manifest.ranks == 1)
      continue;
    if (done.last < 0)
      return Status::badInput("certificate rule 7: the gradients of " + unit.name + " are never reduced");
    // What a state keeps of them was reduced by the step that left it, and is reduced by the one that takes it: that
    // nothing else is computed from it is rule 10's.
    if (manifest.keepsSums(unit))
      continue;
    for (const MeshAxis &axis : manifest.mesh)
      if (axis.size > 1 && !axis.isTensor &&
          std::find(done.axes.begin(), done.axes.end(), axis.name) == done.axes.end())
        return Status::badInput("certificate rule 7: the gradients of " + unit.name + " are never reduced along '" +
                                axis.name + "'");
  }
  return Status::success();
}

Status StructureChecker::check() {
  if (Status s = checkAxes(); !s.ok())
    return s;
  int64_t end = manifest.stateBytes;
  for (const Buffer &buffer : plan.buffers) {
    if (Status s = checkBuffer(buffer); !s.ok())
      return s;
    end = std::max(end, buffer.offset + buffer.bytes);
  }
  if (manifest.arenaBytes - end >= kArenaAlignment)
    return Status::badInput("certificate rule 1: the arena of " + std::to_string(manifest.arenaBytes) +
                            " bytes goes on after its last buffer, which ends at byte " + std::to_string(end));
  std::vector<int32_t> lastUse(plan.communicators.size(), -1);
  for (size_t i = 0; i < plan.commands.size(); ++i) {
    const Command &command = plan.commands[i];
    auto id = static_cast<int32_t>(i);
    if (Status s = checkOperands(id); !s.ok())
      return s;
    if (const auto *wait = command.as<WaitCommand>())
      if (Status s = checkWait(id, *wait); !s.ok())
        return s;
    const auto *collective = command.as<CollectiveCommand>();
    if (!collective)
      continue;
    auto communicator = static_cast<size_t>(collective->communicator);
    int32_t &last = lastUse[communicator];
    if (last >= 0 && plan.commands[static_cast<size_t>(last)].stream != command.stream)
      return error(id, 3,
                   "communicator '" + plan.communicators[communicator] + "' is used on stream '" +
                       plan.streams[static_cast<size_t>(command.stream)] + "' and, by " + describeCommand(plan, last) +
                       ", on stream '" +
                       plan.streams[static_cast<size_t>(plan.commands[static_cast<size_t>(last)].stream)] +
                       "': ranks could issue its collectives in different orders");
    last = id;
  }
  return checkReductions();
}

Status spmd::runtime::checkCertificate(const Manifest &manifest, const Plan &plan) {
  if (Status s = StructureChecker(manifest, plan).check(); !s.ok())
    return s;
  HappensBefore order(plan);
  if (Status s = checkInFlight(plan, order); !s.ok())
    return s;
  if (Status s = checkMemory(manifest, plan, order); !s.ok())
    return s;
  if (!manifest.values)
    return Status::success();
  Expected<std::vector<ValueEntry>> values = unroll(*manifest.values);
  if (!values)
    return Status::badInput("certificate rule 8: the table of values: " + values.error().message);
  if (Status s = checkValues(manifest, *values, plan, order); !s.ok())
    return s;
  return checkOrigins(manifest, *values);
}
