//===- SymbolOps.cpp - mesh, module tree, shard units ---------------------===//

#include "dialects/Spmd/AsmFormat.h"
#include "dialects/Spmd/FlatLayout.h"
#include "dialects/Spmd/GroupSize.h"
#include "dialects/Spmd/Spmd.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace spmd;

//===----------------------------------------------------------------------===//
// Groups of ranks
//===----------------------------------------------------------------------===//

FailureOr<int64_t> spmd::getGroupSize(SymbolTableCollection &tables, Operation *op, FlatSymbolRefAttr mesh,
                                      ArrayAttr axes) {
  auto meshOp = tables.lookupNearestSymbolFrom<MeshOp>(op, mesh);
  if (!meshOp)
    return op->emitOpError() << "names mesh " << mesh << ", which does not exist";
  for (auto axis : axes.getAsRange<StringAttr>())
    if (meshOp.getAxisIndex(axis) < 0) {
      InFlightDiagnostic diag = op->emitOpError()
                                << "names axis " << axis << ", which mesh " << mesh << " does not have";
      diag.attachNote(meshOp.getLoc()) << "the mesh is here";
      return diag;
    }
  return meshOp.getNumRanks(axes);
}

FailureOr<ShardUnitOp> spmd::getUnit(SymbolTableCollection &tables, Operation *op, FlatSymbolRefAttr unit) {
  auto unitOp = tables.lookupNearestSymbolFrom<ShardUnitOp>(op, unit);
  if (!unitOp)
    return op->emitOpError() << "names shard unit " << unit << ", which does not exist";
  return unitOp;
}

//===----------------------------------------------------------------------===//
// MeshOp
//===----------------------------------------------------------------------===//

LogicalResult MeshOp::verify() {
  // C1
  if (getAxisNames().size() != getAxisSizes().size())
    return emitOpError() << "has " << getAxisNames().size() << " axis names and " << getAxisSizes().size() << " sizes";
  // C2
  llvm::StringSet<> names;
  for (auto name : getAxisNames().getAsRange<StringAttr>())
    if (!names.insert(name.getValue()).second)
      return emitOpError() << "has axis " << name << " twice";
  // C3
  for (int64_t size : getAxisSizes())
    if (size < 1)
      return emitOpError() << "has an axis of size " << size << ", expected at least 1";
  // C4
  if (std::optional<StringRef> tensor = getTensorAxis();
      tensor && getAxisIndex(*tensor) + 1 != static_cast<int64_t>(getAxisNames().size()))
    return emitOpError() << "has the tensor axis \"" << *tensor << "\", which is not its last axis";
  return success();
}

int64_t MeshOp::getAxisIndex(StringRef axis) {
  for (auto [index, name] : llvm::enumerate(getAxisNames().getAsRange<StringAttr>()))
    if (name.getValue() == axis)
      return index;
  return -1;
}

int64_t MeshOp::getNumRanks(ArrayAttr axes) {
  int64_t ranks = 1;
  for (auto axis : axes.getAsRange<StringAttr>())
    if (int64_t index = getAxisIndex(axis); index >= 0)
      ranks *= getAxisSizes()[index];
  return ranks;
}

int64_t MeshOp::getNumRanks() { return getNumRanks(getAxisNames()); }

ArrayAttr MeshOp::getDataAxes() {
  return getTensorAxisAttr() ? ArrayAttr::get(getContext(), getAxisNames().getValue().drop_back()) : getAxisNames();
}

int64_t MeshOp::getNumDataRanks() { return getNumRanks(getDataAxes()); }

ArrayAttr MeshOp::getTensorAxes() {
  return getTensorAxisAttr() ? ArrayAttr::get(getContext(), getAxisNames().getValue().take_back()) : ArrayAttr();
}

//===----------------------------------------------------------------------===//
// ModuleTreeOp
//===----------------------------------------------------------------------===//

LogicalResult ModuleTreeOp::verifyRegions() {
  llvm::StringMap<TreeModuleOp> modules;
  for (Operation &op : getBody().front()) {
    auto module = dyn_cast<TreeModuleOp>(op);
    // C1
    if (!module)
      return op.emitOpError() << "is not allowed in a module tree";
    // C2
    if (!modules.try_emplace(module.getPath(), module).second)
      return module.emitOpError() << "is the second module \"" << module.getPath() << "\"";
  }
  for (auto module : getBody().getOps<TreeModuleOp>())
    for (auto child : module.getChildren().getAsRange<StringAttr>())
      // C3
      if (!modules.count(child))
        return module.emitOpError() << "names child " << child << ", which is not in the tree";
  return success();
}

//===----------------------------------------------------------------------===//
// ShardUnitOp
//===----------------------------------------------------------------------===//

LogicalResult ShardUnitOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  // C1, C2
  FailureOr<int64_t> ranks = getGroupSize(symbolTable, *this, getMeshAttr(), getAxes());
  if (failed(ranks))
    return failure();
  // C3
  if (getLayout().getPadded() % (*ranks * kSegmentAlignment) != 0)
    return emitOpError() << "has padded size " << getLayout().getPadded() << ", which is not a multiple of "
                         << kSegmentAlignment << " times " << *ranks << " ranks";
  // C4
  if (std::optional<int64_t> group = getReshardGroup(); group && (*group < 1 || *ranks % *group != 0))
    return emitOpError() << "has a reshard_group of " << *group << ", which is no factor of " << *ranks << " ranks";
  // C5
  for (NamedAttribute entry : getPrecisionAttr() ? getPrecisionAttr().getValue() : ArrayRef<NamedAttribute>()) {
    auto type = dyn_cast<TypeAttr>(entry.getValue());
    if (!llvm::is_contained({"param", "reduce", "grad", "buffer", "output", "master"}, entry.getName()) || !type ||
        !isa<FloatType>(type.getValue()))
      return emitOpError() << "has " << entry.getName() << " = " << entry.getValue()
                           << " in its precision, expected param, reduce, grad, buffer, output or master and a float type";
  }
  // C6
  if (getIgnored() && getMode() != UnitMode::replicate)
    return emitOpError("is ignored and not replicated");
  return success();
}

int64_t ShardUnitOp::getNumRanks() {
  auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(*this, getMeshAttr());
  return mesh ? mesh.getNumRanks(getAxes()) : 1;
}

bool ShardUnitOp::isSharded() { return getMode() != UnitMode::replicate && getNumRanks() > 1; }

bool ShardUnitOp::hasWholeParameters() { return getMode() == UnitMode::shard_optimizer && getNumRanks() > 1; }

int64_t ShardUnitOp::getChunk() {
  int64_t padded = getLayout().getPadded();
  return isSharded() ? padded / getNumRanks() : padded;
}

RankedTensorType ShardUnitOp::getChunkType() { return RankedTensorType::get({getChunk()}, getLayout().getDtype()); }

RankedTensorType ShardUnitOp::getFlatType() {
  return RankedTensorType::get({getLayout().getPadded()}, getLayout().getDtype());
}
