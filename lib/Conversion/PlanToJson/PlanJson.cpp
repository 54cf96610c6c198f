//===- PlanJson.cpp - train_step.plan.json --------------------------------===//

#include "JsonWriter.h"
#include "dialects/Spmd/Source.h"
#include "spmd/Conversion/PlanToJson/PlanToJson.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;
using llvm::json::OStream;

namespace {

/// Writes the commands of one program; knows the numbers of buffers and commands.
class CommandWriter {
public:
  explicit CommandWriter(plan::ProgramOp program) {
    for (auto [id, buffer] : llvm::enumerate(program.getOps<plan::BufferOp>()))
      buffers[buffer.getSymName()] = id;
    for (auto [id, command] : llvm::enumerate(program.getOps<plan::CommandOpInterface>()))
      ids[command.getEvent()] = id;
  }

  void write(OStream &json, plan::CommandOpInterface command);

private:
  void writeRefBody(OStream &json, plan::RefAttr ref);
  void writeRef(OStream &json, StringRef key, plan::RefAttr ref) {
    json.attributeObject(key, [&] { writeRefBody(json, ref); });
  }
  void writeRefs(OStream &json, StringRef key, ArrayAttr refs) {
    json.attributeArray(key, [&] {
      for (auto ref : refs.getAsRange<plan::RefAttr>())
        json.object([&] { writeRefBody(json, ref); });
    });
  }
  void writeFields(OStream &json, plan::KernelOp op);
  void writeFields(OStream &json, plan::GemmOp op);
  void writeFields(OStream &json, plan::AllGatherOp op);
  void writeFields(OStream &json, plan::ReduceScatterOp op);
  void writeFields(OStream &json, plan::AllReduceOp op);
  void writeFields(OStream &json, plan::WaitOp op) { json.attribute("for", ids.at(op.getAwaited())); }
  void writeFields(OStream &json, plan::CopyOp op);
  void writeFields(OStream &json, plan::FillOp op);
  void writeFields(OStream &json, plan::CheckIndexOp op);

  llvm::StringMap<int64_t> buffers;
  DenseMap<Value, int64_t> ids;
};

} // namespace

void CommandWriter::writeRefBody(OStream &json, plan::RefAttr ref) {
  json.attribute("buffer", buffers.lookup(ref.getBuffer().getValue()));
  json.attribute("offset", ref.getOffset());
  if (!ref.getCoord().empty())
    writeInts(json, "coord", ref.getCoord());
  json.attribute("bytes", ref.getBytes());
  json.attribute("access", stringifyAccess(ref.getAccess()));
}

void CommandWriter::writeFields(OStream &json, plan::KernelOp op) {
  json.attribute("kernel", op.getKernel());
  json.attribute("parallel", static_cast<int64_t>(op.getParallel()));
  json.attribute("grain", static_cast<int64_t>(op.getGrain()));
  writeRefs(json, "args", op.getArgs());
}

void CommandWriter::writeFields(OStream &json, plan::GemmOp op) {
  for (StringRef key : {"m", "n", "k", "lda", "ldb", "ldc", "batch", "stride_a", "stride_b", "stride_c"})
    json.attribute(key, op->getAttrOfType<IntegerAttr>(key).getInt());
  json.attribute("trans_a", op.getTransA());
  json.attribute("trans_b", op.getTransB());
  json.attribute("beta", op.getBeta().convertToDouble());
  json.attribute("dtype", getDTypeName(op.getDtype()));
  writeRef(json, "a", op.getA());
  writeRef(json, "b", op.getB());
  writeRef(json, "c", op.getC());
  if (op.getBias())
    writeRef(json, "bias", *op.getBias());
  if (op.getResidual())
    writeRef(json, "residual", *op.getResidual());
  if (op.getActivation())
    json.attribute("activation", *op.getActivation());
  if (op.getPreActivation())
    writeRef(json, "pre_activation", *op.getPreActivation());
}

void CommandWriter::writeFields(OStream &json, plan::AllGatherOp op) {
  json.attribute("comm", op.getComm());
  json.attribute("unit", op.getUnit());
  json.attribute("dtype", getDTypeName(op.getDtype()));
  json.attribute("count", static_cast<int64_t>(op.getCount()));
  writeRef(json, "send", op.getSend());
  writeRef(json, "recv", op.getRecv());
}

void CommandWriter::writeFields(OStream &json, plan::ReduceScatterOp op) {
  json.attribute("comm", op.getComm());
  json.attribute("unit", op.getUnit());
  json.attribute("kind", op.getKind());
  json.attribute("dtype", getDTypeName(op.getDtype()));
  json.attribute("count", static_cast<int64_t>(op.getCount()));
  writeRef(json, "send", op.getSend());
  writeRef(json, "recv", op.getRecv());
}

void CommandWriter::writeFields(OStream &json, plan::AllReduceOp op) {
  json.attribute("comm", op.getComm());
  json.attribute("unit", op.getUnit());
  writeStrings(json, "kinds", op.getKinds());
  json.attribute("dtype", getDTypeName(op.getDtype()));
  writeInts(json, "counts", op.getCounts());
  writeRefs(json, "buffers", op.getBuffers());
}

void CommandWriter::writeFields(OStream &json, plan::CopyOp op) {
  json.attribute("bytes", op.getDst().getBytes());
  writeRef(json, "src", op.getSrc());
  writeRef(json, "dst", op.getDst());
}

void CommandWriter::writeFields(OStream &json, plan::FillOp op) {
  json.attribute("bytes", op.getDst().getBytes());
  json.attribute("value", static_cast<int64_t>(op.getValue()));
  writeRef(json, "dst", op.getDst());
}

void CommandWriter::writeFields(OStream &json, plan::CheckIndexOp op) {
  json.attribute("count", static_cast<int64_t>(op.getCount()));
  json.attribute("dtype", getDTypeName(op.getDtype()));
  json.attribute("low", static_cast<int64_t>(op.getLow()));
  json.attribute("high", static_cast<int64_t>(op.getHigh()));
  if (op.getIgnoreIndex())
    json.attribute("ignore_index", static_cast<int64_t>(*op.getIgnoreIndex()));
  json.attribute("use", op.getUse());
  writeRef(json, "ids", op.getIds());
}

void CommandWriter::write(OStream &json, plan::CommandOpInterface command) {
  json.attribute("op", command->getName().stripDialect());
  json.attribute("stream", command.getStream());
  llvm::TypeSwitch<Operation *>(command)
      .Case<plan::KernelOp, plan::GemmOp, plan::AllGatherOp, plan::ReduceScatterOp, plan::AllReduceOp, plan::WaitOp,
            plan::CopyOp, plan::FillOp, plan::CheckIndexOp>([&](auto op) { writeFields(json, op); });
  json.attribute("loc", describeSource(command.getLoc()));
}

void spmd::writePlanJson(plan::ProgramOp program, raw_ostream &os) {
  JsonWriter writer(os);
  writer.attribute("format", "spmd-plan");
  writer.attribute("version", 1);
  auto names = [](ArrayAttr list) {
    llvm::json::Array array;
    for (StringRef name : list.getAsValueRange<StringAttr>())
      array.push_back(name);
    return array;
  };
  writer.attribute("streams", names(program.getStreams()));
  writer.attribute("communicators", names(program.getCommunicators()));
  int64_t id = 0;
  writer.objects("buffers", program.getOps<plan::BufferOp>(), [&](OStream &json, plan::BufferOp buffer) {
    json.attribute("id", id++);
    json.attribute("name", buffer.getLabel());
    json.attribute("class", plan::getClassName(buffer.getBufferClass()));
    json.attribute("offset", static_cast<int64_t>(buffer.getOffset()));
    json.attribute("bytes", static_cast<int64_t>(buffer.getBytes()));
    json.attribute("state", buffer.getState());
    json.attribute("loc", describeSource(buffer.getLoc()));
  });
  CommandWriter commands(program);
  writer.objects("commands", program.getOps<plan::CommandOpInterface>(),
                 [&](OStream &json, plan::CommandOpInterface command) { commands.write(json, command); });
  writer.finish();
}
