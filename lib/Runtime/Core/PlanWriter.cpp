//===- PlanWriter.cpp - A plan as JSON ------------------------------------===//
//
// What PlanReader.cpp reads. The same plan gives the same bytes.
//
//===----------------------------------------------------------------------===//

#include "JsonWriter.h"
#include "spmd/Runtime/Core/Plan.h"

using namespace spmd::runtime;

namespace {
class PlanWriter {
public:
  explicit PlanWriter(const Plan &plan) : plan(plan) {}

  std::string write();

private:
  void writeBuffer(const Buffer &buffer);
  void writeCommand(const Command &command);
  void writeGemm(const Command &command);
  void writeCollective(const Command &command);
  void writeRef(const char *key, const Ref &ref) {
    json.object(key, [&] { writeRefBody(ref); });
  }
  void writeRefs(const char *key, const std::vector<Ref> &refs) {
    json.objects(key, refs, [&](const Ref &ref) { writeRefBody(ref); });
  }
  void writeRefBody(const Ref &ref);

  const Plan &plan;
  JsonWriter json;
};
} // namespace

void PlanWriter::writeRefBody(const Ref &ref) {
  json.member("buffer", ref.buffer);
  json.member("offset", ref.offset);
  if (!ref.coord.empty())
    json.member("coord", ref.coord);
  json.member("bytes", ref.bytes);
  json.member("access", nameOf(ref.access));
}

void PlanWriter::writeBuffer(const Buffer &buffer) {
  json.member("id", buffer.id);
  json.member("name", buffer.name);
  json.member("class", buffer.memoryClass);
  json.member("offset", buffer.offset);
  json.member("bytes", buffer.bytes);
  json.member("state", buffer.state);
  json.member("loc", buffer.location);
}

void PlanWriter::writeGemm(const Command &command) {
  const GemmShape &gemm = command.gemm;
  json.member("m", gemm.m);
  json.member("n", gemm.n);
  json.member("k", gemm.k);
  json.member("lda", gemm.lda);
  json.member("ldb", gemm.ldb);
  json.member("ldc", gemm.ldc);
  json.member("batch", gemm.batch);
  json.member("stride_a", gemm.strideA);
  json.member("stride_b", gemm.strideB);
  json.member("stride_c", gemm.strideC);
  json.member("trans_a", gemm.transA);
  json.member("trans_b", gemm.transB);
  json.member("beta", gemm.beta);
  json.member("dtype", command.dtype);
  auto writePart = [&](const char *key, int32_t ref) {
    if (ref >= 0)
      writeRef(key, command.refs[static_cast<size_t>(ref)]);
  };
  writePart("a", 0);
  writePart("b", 1);
  writePart("c", 2);
  writePart("bias", gemm.bias);
  writePart("residual", gemm.residual);
  if (gemm.activation != Activation::None)
    json.member("activation", nameOf(gemm.activation));
  writePart("pre_activation", gemm.preActivation);
}

void PlanWriter::writeCollective(const Command &command) {
  json.member("comm", plan.communicators[static_cast<size_t>(command.communicator)]);
  json.member("unit", command.unit);
  std::vector<std::string> kinds;
  for (ReductionKind kind : command.kinds)
    kinds.push_back(nameOf(kind));
  if (command.kind == CommandKind::AllReduce) {
    json.member("kinds", kinds);
    json.member("dtype", command.dtype);
    json.member("counts", command.counts);
    writeRefs("buffers", command.refs);
    return;
  }
  if (command.kind == CommandKind::ReduceScatter)
    json.member("kind", kinds[0]);
  json.member("dtype", command.dtype);
  json.member("count", command.counts[0]);
  writeRef("send", command.refs[0]);
  writeRef("recv", command.refs[1]);
}

void PlanWriter::writeCommand(const Command &command) {
  json.member("op", nameOf(command.kind));
  json.member("stream", plan.streams[static_cast<size_t>(command.stream)]);
  switch (command.kind) {
  case CommandKind::Kernel:
    json.member("kernel", command.kernel);
    json.member("parallel", command.parallel);
    json.member("grain", command.grain);
    writeRefs("args", command.refs);
    break;
  case CommandKind::Gemm:
    writeGemm(command);
    break;
  case CommandKind::AllGather:
  case CommandKind::ReduceScatter:
  case CommandKind::AllReduce:
    writeCollective(command);
    break;
  case CommandKind::Wait:
    json.member("for", command.waitFor);
    break;
  case CommandKind::Copy:
    json.member("bytes", command.bytes);
    writeRef("src", command.refs[0]);
    writeRef("dst", command.refs[1]);
    break;
  case CommandKind::Fill:
    json.member("bytes", command.bytes);
    json.member("value", command.value);
    writeRef("dst", command.refs[0]);
    break;
  case CommandKind::CheckIndex:
    json.member("count", command.counts[0]);
    json.member("dtype", command.dtype);
    json.member("low", command.low);
    json.member("high", command.high);
    json.optionalMember("ignore_index", command.ignoreIndex);
    json.member("use", command.use);
    writeRef("ids", command.refs[0]);
    break;
  }
  json.member("loc", command.location);
}

std::string PlanWriter::write() {
  json.member("format", "spmd-plan");
  json.member("version", kPlanVersion);
  json.member("streams", plan.streams);
  json.member("communicators", plan.communicators);
  if (!plan.axes.empty())
    json.object("axes", [&] {
      for (const auto &[name, axes] : plan.axes)
        json.member(name.c_str(), axes);
    });
  json.objects("buffers", plan.buffers, [&](const Buffer &buffer) { writeBuffer(buffer); });
  json.objects("commands", plan.commands, [&](const Command &command) { writeCommand(command); });
  return json.finish();
}

std::string spmd::runtime::writePlan(const Plan &plan) { return PlanWriter(plan).write(); }
