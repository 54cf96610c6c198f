//===- Report.cpp - What was compiled, in a few lines ---------------------===//

#include "Report.h"
#include "dialects/Spmd/Source.h"
#include "spmd/Conversion/KernelToPlan/ProgramLiveness.h"
#include "spmd/Conversion/PlanToJson/PlanToJson.h"
#include "spmd/Runtime/Core/Text.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace spmd;
using runtime::formatCount;
using Rows = std::vector<std::vector<std::string>>;

static std::string formatModules(ShardUnitOp unit) {
  std::string text;
  for (StringRef module : unit.getModules().getAsValueRange<StringAttr>())
    text += (text.empty() ? "" : " ") + (module.empty() ? "(root)" : module.str());
  return text;
}

static void printUnits(ModuleOp module, raw_ostream &os) {
  Rows rows = {{"unit", "modules", "parameters", "elements", "elements per rank"}};
  for (auto unit : module.getOps<ShardUnitOp>()) {
    int64_t elements = 0;
    for (SegmentAttr segment : unit.getLayout().getSegments())
      elements += segment.getNumel();
    rows.push_back({unit.getSymName().str(), formatModules(unit), formatCount(unit.getLayout().getSegments().size()),
                    formatCount(elements), formatCount(unit.getChunk())});
  }
  os << "shard units:\n" << runtime::formatTable(rows);
}

/// Bytes that each rank hands to a collective.
static int64_t getSentBytes(plan::CommandOpInterface command) {
  int64_t bytes = 0;
  for (plan::RefAttr ref : command.getRefs())
    if (ref.reads())
      bytes += ref.getBytes();
  return bytes;
}

static void printCollectives(plan::ProgramOp program, raw_ostream &os) {
  llvm::MapVector<StringRef, std::pair<int64_t, int64_t>> totals;
  for (auto command : program.getOps<plan::CommandOpInterface>())
    if (!command.getCommunicator().empty()) {
      auto &[count, bytes] = totals[command->getName().stripDialect()];
      ++count;
      bytes += getSentBytes(command);
    }
  os << "collectives per step, bytes each rank contributes:" << (totals.empty() ? " none" : "") << '\n';
  Rows rows;
  for (auto &[name, total] : totals)
    rows.push_back({name.str(), formatCount(total.first), formatCount(total.second) + " bytes"});
  os << runtime::formatTable(rows);
}

static void printArena(plan::ProgramOp program, raw_ostream &os) {
  int64_t state = program.getStateBytes(), transient = program.getTransientBytes();
  os << "arena: " << formatCount(state + transient) << " bytes per rank\n";
  llvm::MapVector<StringRef, int64_t> classes;
  for (auto buffer : program.getOps<plan::BufferOp>())
    if (buffer.getState())
      classes[plan::getClassName(buffer.getBufferClass())] += buffer.getBytes();
  Rows rows;
  for (auto &[name, bytes] : classes)
    rows.push_back({name.str(), formatCount(bytes)});
  rows.push_back({"transient", formatCount(transient)});
  os << runtime::formatTable(rows) << "transient bytes where most are alive:\n";
  rows.clear();
  for (NamedAttribute entry : program.getPeak())
    if (auto bufferClass = plan::symbolizeBufferClass(entry.getName()))
      rows.push_back(
          {plan::getClassName(*bufferClass).str(), formatCount(cast<IntegerAttr>(entry.getValue()).getInt())});
  rows.push_back({"lower bound", formatCount(program.getLowerBound())});
  os << runtime::formatTable(rows);
}

void printReport(ModuleOp module, raw_ostream &os) {
  plan::ProgramOp program = getProgram(module);
  auto step = module->getAttrOfType<DictionaryAttr>("spmd.step");
  auto name = step ? step.getAs<StringAttr>("name") : StringAttr();
  os << (name ? name.getValue() : "step") << ": " << formatCount(program.getRanks()) << " ranks\n";
  printUnits(module, os);
  printCollectives(program, os);
  printArena(program, os);
}

LogicalResult checkBudget(ModuleOp module, int64_t budget) {
  plan::ProgramOp program = getProgram(module);
  int64_t bytes = program.getStateBytes() + program.getTransientBytes();
  if (bytes <= budget)
    return success();
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "the arena of a rank takes " << formatCount(bytes) << " bytes, " << formatCount(bytes - budget)
     << " more than the budget of " << formatCount(budget) << ": " << formatCount(program.getStateBytes())
     << " persist, and at the peak there are\n";
  SmallVector<plan::BufferOp> alive = ProgramLiveness(program).getAliveAtPeak();
  Rows rows;
  constexpr size_t shown = 20;
  for (plan::BufferOp buffer : ArrayRef(alive).take_front(shown))
    rows.push_back({buffer.getLabel().str(), plan::getClassName(buffer.getBufferClass()).str(),
                    formatCount(buffer.getBytes()), describeSource(buffer.getLoc())});
  os << runtime::formatTable(rows);
  if (alive.size() > shown)
    os << "  and " << alive.size() - shown << " smaller ones\n";
  return emitError(UnknownLoc::get(module.getContext())) << StringRef(text).rtrim();
}
