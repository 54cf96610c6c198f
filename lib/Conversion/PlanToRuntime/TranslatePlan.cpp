//===- TranslatePlan.cpp - plan.program as runtime::Plan ------------------===//

#include "TranslateKinds.h"
#include "TranslateRepeats.h"
#include "dialects/Spmd/ElementType.h"
#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Source.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;
using runtime::Command;

namespace {

/// Translates one program; knows the numbers of what commands refer to. The first problem is an error at its op.
class PlanTranslator {
public:
  explicit PlanTranslator(plan::ProgramOp program) : program(program) {}

  FailureOr<runtime::PlanFile> translate();

private:
  runtime::Buffer translateBuffer(plan::BufferOp op);
  Command translateCommand(plan::CommandOpInterface op);
  runtime::Ref translateRef(plan::RefAttr ref);
  void addRefs(Command &command, ArrayAttr refs) {
    for (auto ref : refs.getAsRange<plan::RefAttr>())
      command.refs.push_back(translateRef(ref));
  }
  /// Appends what is there, and says where; -1 when nothing is.
  int32_t addOptionalRef(Command &command, std::optional<plan::RefAttr> ref);
  runtime::DType translateDType(Operation *op, Type type);

  // What an op does; its references go to `command`.
  runtime::KernelCommand translate(Command &command, plan::KernelOp op);
  runtime::AttentionCommand translate(Command &command, plan::AttentionOp op);
  runtime::AttentionCommand translate(Command &command, plan::AttentionBackwardOp op);
  template <typename OpT>
  runtime::AttentionCommand translateAttention(Command &command, OpT op);
  runtime::GemmCommand translate(Command &command, plan::GemmOp op);
  runtime::CollectiveCommand translate(Command &command, plan::CollectiveOpInterface op);
  runtime::WaitCommand translate(Command &command, plan::WaitOp op);
  runtime::CopyCommand translate(Command &command, plan::CopyOp op);
  runtime::FillCommand translate(Command &command, plan::FillOp op);
  runtime::CheckIndexCommand translate(Command &command, plan::CheckIndexOp op);

  plan::ProgramOp program;
  runtime::Plan plan;
  llvm::StringMap<int32_t> buffers, communicators;
  DenseMap<Value, int32_t> commands;
  bool hasFailed = false;
};

} // namespace

runtime::DType PlanTranslator::translateDType(Operation *op, Type type) {
  if (std::optional<runtime::DType> dtype = getDType(type))
    return *dtype;
  hasFailed = true;
  op->emitOpError("has dtype ") << type << ", which the runtime has not";
  return runtime::DType::F32;
}

static runtime::Access translateAccess(plan::Access access) {
  switch (access) {
  case plan::Access::Read:
    return runtime::Access::Read;
  case plan::Access::Write:
    return runtime::Access::Write;
  case plan::Access::ReadWrite:
    return runtime::Access::ReadWrite;
  }
  llvm_unreachable("unknown access");
}

runtime::Ref PlanTranslator::translateRef(plan::RefAttr ref) {
  return {buffers.lookup(ref.getBuffer().getValue()), ref.getOffset(), ref.getCoord().vec(), ref.getBytes(),
          translateAccess(ref.getAccess())};
}

int32_t PlanTranslator::addOptionalRef(Command &command, std::optional<plan::RefAttr> ref) {
  if (!ref)
    return -1;
  command.refs.push_back(translateRef(*ref));
  return static_cast<int32_t>(command.refs.size()) - 1;
}

runtime::KernelCommand PlanTranslator::translate(Command &command, plan::KernelOp op) {
  addRefs(command, op.getArgs());
  return {op.getKernel().str(), static_cast<int64_t>(op.getParallel()), static_cast<int64_t>(op.getGrain())};
}

template <typename OpT>
runtime::AttentionCommand PlanTranslator::translateAttention(Command &command, OpT op) {
  for (plan::RefAttr ref : op.getRefs())
    command.refs.push_back(translateRef(ref));
  runtime::AttentionCommand attention;
  attention.symbol = op.getKernel().str();
  attention.parallel = static_cast<int64_t>(op.getParallel());
  attention.grain = static_cast<int64_t>(op.getGrain());
  attention.shape = translateShape(op.getShape(), translateDType(op, op.getShape().getDtype()));
  attention.maskInputs = op.getMaskInputs() ? static_cast<int32_t>(op.getMaskInputs()->size()) : 0;
  if (op.getLibrary())
    attention.libraryPlan = runtime::LibraryPlan{op.getLibrary()->str(), op.getLibraryPlan()->str()};
  return attention;
}

runtime::AttentionCommand PlanTranslator::translate(Command &command, plan::AttentionOp op) {
  return translateAttention(command, op);
}

runtime::AttentionCommand PlanTranslator::translate(Command &command, plan::AttentionBackwardOp op) {
  runtime::AttentionCommand attention = translateAttention(command, op);
  attention.gradients = static_cast<int32_t>(op.getGradients().size());
  attention.hasMaskGradient = op.getMaskGradient().has_value();
  return attention;
}

runtime::GemmCommand PlanTranslator::translate(Command &command, plan::GemmOp op) {
  command.refs = {translateRef(op.getA()), translateRef(op.getB()), translateRef(op.getC())};
  runtime::GemmShape shape;
  shape.m = op.getM(), shape.n = op.getN(), shape.k = op.getK();
  shape.lda = op.getLda(), shape.ldb = op.getLdb(), shape.ldc = op.getLdc();
  shape.transA = op.getTransA(), shape.transB = op.getTransB();
  shape.beta = op.getBeta().convertToDouble();
  shape.batch = op.getBatch();
  shape.strideA = op.getStrideA(), shape.strideB = op.getStrideB(), shape.strideC = op.getStrideC();
  shape.bias = addOptionalRef(command, op.getBias());
  shape.residual = addOptionalRef(command, op.getResidual());
  shape.preActivation = addOptionalRef(command, op.getPreActivation());
  shape.biasGradient = addOptionalRef(command, op.getBiasGradient());
  shape.workspace = addOptionalRef(command, op.getWorkspace());
  shape.biasGradientOf = translateOperand(op.getBiasGradientOf());
  shape.activation = translateActivation(op.getActivation());
  return {shape, translateDType(op, op.getDtype())};
}

runtime::CollectiveCommand PlanTranslator::translate(Command &command, plan::CollectiveOpInterface op) {
  for (plan::RefAttr ref : cast<plan::CommandOpInterface>(op.getOperation()).getRefs())
    command.refs.push_back(translateRef(ref));
  runtime::CollectiveCommand collective;
  collective.kind = op.getCollectiveKind();
  collective.communicator = communicators.lookup(op.getComm());
  collective.unit = op.getUnit().str();
  collective.dtype = translateDType(op, op.getDtype());
  for (int64_t count : op.getElementCounts())
    collective.counts.push_back(count);
  for (plan::ReductionKind kind : op.getReductions())
    collective.kinds.push_back(translateKind(kind));
  return collective;
}

runtime::WaitCommand PlanTranslator::translate(Command &, plan::WaitOp op) { return {commands.at(op.getAwaited())}; }

runtime::CopyCommand PlanTranslator::translate(Command &command, plan::CopyOp op) {
  command.refs = {translateRef(op.getSrc()), translateRef(op.getDst())};
  return {op.getDst().getBytes()};
}

runtime::FillCommand PlanTranslator::translate(Command &command, plan::FillOp op) {
  command.refs = {translateRef(op.getDst())};
  return {op.getDst().getBytes(), static_cast<uint8_t>(op.getValue())};
}

runtime::CheckIndexCommand PlanTranslator::translate(Command &command, plan::CheckIndexOp op) {
  command.refs = {translateRef(op.getIds())};
  runtime::CheckIndexCommand check;
  check.count = op.getCount();
  check.dtype = translateDType(op, op.getDtype());
  check.low = op.getLow(), check.high = op.getHigh();
  check.ignoreIndex = op.getIgnoreIndex();
  check.use = op.getUse().str();
  return check;
}

Command PlanTranslator::translateCommand(plan::CommandOpInterface op) {
  Command command;
  command.stream = static_cast<int32_t>(op.getStream());
  command.location = describeSource(op.getLoc());
  llvm::TypeSwitch<Operation *>(op)
      .Case<plan::KernelOp, plan::AttentionOp, plan::AttentionBackwardOp, plan::GemmOp, plan::CollectiveOpInterface,
            plan::WaitOp, plan::CopyOp, plan::FillOp, plan::CheckIndexOp>(
          [&](auto op) { command.action = translate(command, op); });
  return command;
}

runtime::Buffer PlanTranslator::translateBuffer(plan::BufferOp op) {
  runtime::Buffer buffer;
  buffer.id = static_cast<int32_t>(plan.buffers.size());
  buffer.name = op.getLabel().str();
  buffer.memoryClass = plan::getClassName(op.getBufferClass()).str();
  buffer.offset = op.getOffset();
  buffer.bytes = op.getBytes();
  buffer.alignment = static_cast<int64_t>(op.getAlignment().value_or(1));
  buffer.state = op.getState();
  buffer.location = describeSource(op.getLoc());
  return buffer;
}

FailureOr<runtime::PlanFile> PlanTranslator::translate() {
  for (unsigned stream = 0; stream <= plan::getMaxEnumValForStream(); ++stream)
    plan.streams.push_back(stringifyStream(static_cast<plan::Stream>(stream)).str());
  for (auto communicator : program.getOps<plan::CommunicatorOp>()) {
    std::string name = communicator.getSymName().str();
    communicators[name] = static_cast<int32_t>(plan.communicators.size());
    if (communicator.getAxes())
      for (StringRef axis : communicator.getAxesAttr().getAsValueRange<StringAttr>())
        plan.axes[name].push_back(axis.str());
    if (std::optional<uint64_t> blocks = communicator.getMaxBlocks())
      plan.maxBlocks[name] = static_cast<int64_t>(*blocks);
    plan.communicators.push_back(std::move(name));
  }
  for (auto stream : program.getOps<plan::StreamOp>())
    plan.priorities[stringifyStream(stream.getStream()).str()] = static_cast<int64_t>(stream.getPriority());
  for (auto buffer : program.getOps<plan::BufferOp>()) {
    plan.buffers.push_back(translateBuffer(buffer));
    buffers[buffer.getSymName()] = plan.buffers.back().id;
  }
  for (auto [id, command] : llvm::enumerate(program.getOps<plan::CommandOpInterface>()))
    commands[command.getEvent()] = static_cast<int32_t>(id);
  for (auto command : program.getOps<plan::CommandOpInterface>())
    plan.commands.push_back(translateCommand(command));
  llvm::StringMap<int32_t> inputs;
  for (auto input : program.getOps<plan::InputOp>())
    if (auto batch = dyn_cast<BatchAttr>(input.getRole()))
      inputs[batch.getName()] = buffers.lookup(input.getRef().getBuffer().getValue());
  FailureOr<std::optional<runtime::Repeats>> repeats = translateRepeats(program, program.getIterationAttr(), inputs);
  if (hasFailed || failed(repeats))
    return failure();
  return runtime::PlanFile{std::move(plan), std::move(*repeats)};
}

FailureOr<runtime::PlanFile> spmd::translatePlanFile(plan::ProgramOp program) {
  return PlanTranslator(program).translate();
}

FailureOr<runtime::Plan> spmd::translatePlan(plan::ProgramOp program) {
  FailureOr<runtime::PlanFile> file = translatePlanFile(program);
  if (failed(file))
    return failure();
  runtime::Expected<runtime::Plan> plan = runtime::unroll(std::move(*file));
  if (!plan)
    return program.emitOpError(plan.error().message);
  return std::move(*plan);
}
