//===- PlanWriter.cpp - A plan as JSON ------------------------------------===//
//
// What PlanReader.cpp reads. The same plan gives the same bytes.
//
//===----------------------------------------------------------------------===//

#include "CommandFields.h"
#include "spmd/Runtime/Core/Plan.h"

#include <array>

using namespace spmd::runtime;

namespace {
class PlanWriter {
public:
  explicit PlanWriter(const Plan &plan) : plan(plan) {}

  std::string write(const std::optional<Repeats> &repeats);

private:
  void writeBuffer(const Buffer &buffer);
  void writeCommand(const Command &command);
  void write(const KernelCommand &kernel, const std::vector<Ref> &refs);
  void write(const AttentionCommand &attention, const std::vector<Ref> &refs);
  void write(const GemmCommand &gemm, const std::vector<Ref> &refs);
  void write(const CollectiveCommand &collective, const std::vector<Ref> &refs);
  void write(const WaitCommand &wait, const std::vector<Ref> &refs);
  void write(const CopyCommand &copy, const std::vector<Ref> &refs);
  void write(const FillCommand &fill, const std::vector<Ref> &refs);
  void write(const CheckIndexCommand &check, const std::vector<Ref> &refs);
  void writeLaunch(const KernelCommand &kernel);
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
  if (buffer.alignment > 1)
    json.member("align", buffer.alignment);
  json.member("state", buffer.state);
  json.member("loc", buffer.location);
}

void PlanWriter::writeLaunch(const KernelCommand &kernel) {
  json.member("kernel", kernel.symbol);
  json.member("parallel", kernel.parallel);
  json.member("grain", kernel.grain);
}

void PlanWriter::write(const KernelCommand &kernel, const std::vector<Ref> &refs) {
  writeLaunch(kernel);
  writeRefs("args", refs);
}

void PlanWriter::write(const AttentionCommand &attention, const std::vector<Ref> &refs) {
  writeLaunch(attention);
  writeAttentionShape(json, attention.shape);
  auto writeList = [&](const char *key, size_t begin, size_t end) {
    auto at = [&](size_t ref) { return refs.begin() + static_cast<std::ptrdiff_t>(ref); };
    if (begin != end)
      writeRefs(key, {at(begin), at(end)});
  };
  if (attention.shape.isBackward)
    writeRef("dout", refs[0]);
  for (size_t i = 0; i < 3; ++i)
    writeRef(std::array{"q", "k", "v"}[i], refs[attention.q() + i]);
  writeList("mask_inputs", attention.mask(), attention.out());
  writeRef("out", refs[attention.out()]);
  writeRef("lse", refs[attention.lse()]);
  writeList("gradients", attention.gradient(), attention.maskGradient());
  if (attention.hasMaskGradient)
    writeRef("mask_gradient", refs[attention.maskGradient()]);
  if (attention.libraryPlan)
    json.object("library_plan", [&] {
      json.member("library", attention.libraryPlan->library);
      json.member("plan", attention.libraryPlan->plan);
    });
}

void PlanWriter::write(const GemmCommand &gemm, const std::vector<Ref> &refs) {
  const GemmShape &shape = gemm.shape;
  writeGemmSizes(json, shape);
  json.member("beta", shape.beta);
  json.member("dtype", gemm.dtype);
  auto writePart = [&](const char *key, int32_t ref) {
    if (ref >= 0)
      writeRef(key, refs[static_cast<size_t>(ref)]);
  };
  writePart("a", 0);
  writePart("b", 1);
  writePart("c", 2);
  writePart("bias", shape.bias);
  writePart("residual", shape.residual);
  writeActivation(json, shape.activation);
  writePart("pre_activation", shape.preActivation);
  writeBiasGradientOf(json, shape.biasGradientOf);
  writePart("bias_gradient", shape.biasGradient);
  writePart("workspace", shape.workspace);
}

void PlanWriter::write(const CollectiveCommand &collective, const std::vector<Ref> &refs) {
  json.member("comm", plan.communicators[static_cast<size_t>(collective.communicator)]);
  writeExchange(json, collective);
  if (isInPlace(collective.kind))
    return writeRefs("buffers", refs);
  writeRef("send", refs[0]);
  writeRef("recv", refs[1]);
}

void PlanWriter::write(const WaitCommand &wait, const std::vector<Ref> &) { json.member("for", wait.awaited); }

void PlanWriter::write(const CopyCommand &copy, const std::vector<Ref> &refs) {
  json.member("bytes", copy.bytes);
  writeRef("src", refs[0]);
  writeRef("dst", refs[1]);
}

void PlanWriter::write(const FillCommand &fill, const std::vector<Ref> &refs) {
  json.member("bytes", fill.bytes);
  json.member("value", int32_t{fill.value});
  writeRef("dst", refs[0]);
}

void PlanWriter::write(const CheckIndexCommand &check, const std::vector<Ref> &refs) {
  writeCheckIndex(json, check);
  writeRef("ids", refs[0]);
}

void PlanWriter::writeCommand(const Command &command) {
  json.member("op", nameOf(command));
  json.member("stream", plan.streams[static_cast<size_t>(command.stream)]);
  command.visit([&](const auto &action) { write(action, command.refs); });
  json.member("loc", command.location);
}

std::string PlanWriter::write(const std::optional<Repeats> &repeats) {
  json.member("format", "spmd-plan");
  json.member("version", kPlanVersion);
  json.member("streams", plan.streams);
  json.member("communicators", plan.communicators);
  if (!plan.axes.empty())
    json.object("axes", [&] {
      for (const auto &[name, axes] : plan.axes)
        json.member(name.c_str(), axes);
    });
  auto writeNumbers = [&](const char *key, const std::map<std::string, int64_t> &numbers) {
    if (!numbers.empty())
      json.object(key, [&] {
        for (const auto &[name, number] : numbers)
          json.member(name.c_str(), number);
      });
  };
  writeNumbers("priorities", plan.priorities);
  writeNumbers("max_blocks", plan.maxBlocks);
  json.objects("buffers", plan.buffers, [&](const Buffer &buffer) { writeBuffer(buffer); });
  json.objects("commands", plan.commands, [&](const Command &command) { writeCommand(command); });
  writeRepeats(json, repeats);
  return json.finish();
}

std::string spmd::runtime::writePlanFile(const PlanFile &file) { return PlanWriter(file.plan).write(file.repeats); }

std::string spmd::runtime::writePlan(const Plan &plan) { return PlanWriter(plan).write(std::nullopt); }
