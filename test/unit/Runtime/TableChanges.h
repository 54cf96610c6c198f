//===- TableChanges.h - Every change of a table of values --------*- C++ -*-===//

#ifndef SPMD_TEST_UNIT_RUNTIME_TABLECHANGES_H
#define SPMD_TEST_UNIT_RUNTIME_TABLECHANGES_H

#include "TestSupport.h"
#include "spmd/Runtime/Core/Certificate.h"

#include <functional>
#include <variant>
#include <vector>

namespace spmd::runtime {

/// Adds an entry to the manifest's table.
inline ValueEntry &addValue(Manifest &manifest, ValueEntry::Kind kind, std::vector<int32_t> of,
                            std::vector<int64_t> bytes) {
  ValueEntry entry;
  entry.kind = kind;
  entry.of = std::move(of);
  entry.bytes = std::move(bytes);
  return manifest.values->entries.emplace_back(std::move(entry));
}

/// Changes of one field each, of a name.
inline std::vector<std::function<void(Binding &)>> changesOf(const Binding &) {
  return {[](Binding &b) { b.kind = b.kind == Binding::Kind::Batch ? Binding::Kind::Hyper : Binding::Kind::Batch; },
          [](Binding &b) { b.name += "x"; }, [](Binding &b) { b.state += "x"; }, [](Binding &b) { b.group += 1; },
          [](Binding &b) { b.dtype = DType::I32; }};
}

inline std::vector<std::function<void(Operation &)>> changesOf(const KernelOperation &) {
  auto kernel = [](Operation &o) -> KernelOperation & { return std::get<KernelOperation>(o); };
  return {[=](Operation &o) { kernel(o).symbol += "x"; }, [=](Operation &o) { kernel(o).arguments.pop_back(); },
          [=](Operation &o) {
            Access &access = kernel(o).arguments[0];
            access = access == Access::Read ? Access::ReadWrite : Access::Read;
          }};
}

inline std::vector<std::function<void(Operation &)>> changesOf(const AttentionOperation &) {
  auto shape = [](Operation &o) -> AttentionShape & { return std::get<AttentionOperation>(o).shape; };
  std::vector<std::function<void(Operation &)>> changes = {
      [](Operation &o) { std::get<AttentionOperation>(o).symbol += "x"; },
      [](Operation &o) { std::get<AttentionOperation>(o).arguments.pop_back(); },
      [=](Operation &o) { shape(o).isBackward ^= true; },
      [=](Operation &o) { shape(o).scale *= 2; },
      [=](Operation &o) { shape(o).dtype = DType::BF16; },
      [=](Operation &o) { shape(o).mask = AttentionMask::None; },
      [=](Operation &o) { shape(o).windowLow = 0; },
      [=](Operation &o) { shape(o).windowHigh.reset(); }};
  using Shape = AttentionShape;
  for (int64_t Shape::*size :
       {&Shape::batch, &Shape::heads, &Shape::kvHeads, &Shape::qLen, &Shape::kvLen, &Shape::headDim, &Shape::vDim})
    changes.push_back([=](Operation &o) { shape(o).*size += 1; });
  for (AttentionView Shape::*view :
       {&Shape::q, &Shape::k, &Shape::v, &Shape::out, &Shape::dout, &Shape::dq, &Shape::dk, &Shape::dv})
    for (int64_t AttentionView::*stride :
         {&AttentionView::offset, &AttentionView::batch, &AttentionView::head, &AttentionView::row})
      changes.push_back([=](Operation &o) { (shape(o).*view).*stride += 1; });
  return changes;
}

inline std::vector<std::function<void(Operation &)>> changesOf(const GemmOperation &) {
  auto gemm = [](Operation &o) -> GemmOperation & { return std::get<GemmOperation>(o); };
  std::vector<std::function<void(Operation &)>> changes;
  for (int64_t GemmSizes::*number :
       {&GemmSizes::m, &GemmSizes::n, &GemmSizes::k, &GemmSizes::lda, &GemmSizes::ldb, &GemmSizes::ldc,
        &GemmSizes::batch, &GemmSizes::strideA, &GemmSizes::strideB, &GemmSizes::strideC})
    changes.push_back([=](Operation &o) { gemm(o).sizes.*number += 1; });
  for (bool GemmSizes::*flag : {&GemmSizes::transA, &GemmSizes::transB})
    changes.push_back([=](Operation &o) { gemm(o).sizes.*flag ^= true; });
  for (bool GemmOperation::*flag :
       {&GemmOperation::hasBias, &GemmOperation::hasResidual, &GemmOperation::hasPreActivation})
    changes.push_back([=](Operation &o) { gemm(o).*flag ^= true; });
  changes.push_back([=](Operation &o) { gemm(o).sizes.activation = Activation::Relu; });
  changes.push_back([=](Operation &o) { gemm(o).sizes.biasGradientOf = GemmOperand::A; });
  changes.push_back([=](Operation &o) { gemm(o).dtype = DType::F64; });
  return changes;
}

inline std::vector<std::function<void(Operation &)>> changesOf(const CollectiveOperation &) {
  auto collective = [](Operation &o) -> CollectiveOperation & { return std::get<CollectiveOperation>(o); };
  return {[=](Operation &o) {
            CollectiveKind &kind = collective(o).kind;
            kind = kind == CollectiveKind::AllGather ? CollectiveKind::AllReduce : CollectiveKind::AllGather;
          },
          [=](Operation &o) { collective(o).dtype = DType::F64; },
          [=](Operation &o) { collective(o).counts[0] += 1; },
          [=](Operation &o) { collective(o).kinds.push_back(ReductionKind::Max); },
          [=](Operation &o) { collective(o).unit += "x"; },
          [=](Operation &o) { collective(o).axes = {"data"}; }};
}

inline std::vector<std::function<void(Operation &)>> changesOf(const CheckIndexCommand &) {
  auto check = [](Operation &o) -> CheckIndexCommand & { return std::get<CheckIndexCommand>(o); };
  return {[=](Operation &o) { check(o).dtype = DType::I32; }, [=](Operation &o) { check(o).count += 1; },
          [=](Operation &o) { check(o).low += 1; },           [=](Operation &o) { check(o).high += 1; },
          [=](Operation &o) { check(o).ignoreIndex = 3; },    [=](Operation &o) { check(o).use += "x"; }};
}

/// Makes each change to each line, and expects it to be refused.
inline void expectEveryFieldToCount(Manifest &manifest, const Plan &plan) {
  for (ValueEntry &entry : manifest.values->entries) {
    const ValueEntry kept = entry;
    auto expectRefused = [&](const auto &changes, auto &field) {
      for (size_t i = 0; i < changes.size(); ++i) {
        changes[i](field);
        EXPECT_FALSE(checkCertificate(manifest, plan).ok()) << kept.pointer << ": change " << i;
        entry = kept;
      }
    };
    if (entry.kind == ValueEntry::Kind::Source || entry.kind == ValueEntry::Kind::Target)
      expectRefused(changesOf(entry.binding), entry.binding);
    if (entry.kind == ValueEntry::Kind::Compute)
      expectRefused(std::visit([](const auto &it) { return changesOf(it); }, kept.operation), entry.operation);
  }
}

} // namespace spmd::runtime

#endif // SPMD_TEST_UNIT_RUNTIME_TABLECHANGES_H
