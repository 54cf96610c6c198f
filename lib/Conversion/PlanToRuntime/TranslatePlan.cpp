//===- TranslatePlan.cpp - plan.program as runtime::Plan ------------------===//

#include "dialects/Spmd/ElementType.h"
#include "dialects/Spmd/Source.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;
using runtime::Command;
using runtime::CommandKind;

namespace {

/// Translates one program; knows the numbers of what commands refer to. The first problem is an error at its op.
class PlanTranslator {
public:
  explicit PlanTranslator(plan::ProgramOp program) : program(program) {}

  FailureOr<runtime::Plan> translate();

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
  void addCollective(Command &command, Operation *op, FlatSymbolRefAttr communicator, StringRef unit, Type dtype);

  void fill(Command &command, plan::KernelOp op);
  void fill(Command &command, plan::GemmOp op);
  void fill(Command &command, plan::AllGatherOp op);
  void fill(Command &command, plan::ReduceScatterOp op);
  void fill(Command &command, plan::AllReduceOp op);
  void fill(Command &command, plan::WaitOp op);
  void fill(Command &command, plan::CopyOp op);
  void fill(Command &command, plan::FillOp op);
  void fill(Command &command, plan::CheckIndexOp op);

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

static runtime::ReductionKind translateKind(plan::ReductionKind kind) {
  switch (kind) {
  case plan::ReductionKind::sum:
    return runtime::ReductionKind::Sum;
  case plan::ReductionKind::max:
    return runtime::ReductionKind::Max;
  case plan::ReductionKind::min:
    return runtime::ReductionKind::Min;
  case plan::ReductionKind::norm2:
    return runtime::ReductionKind::Norm2;
  }
  llvm_unreachable("unknown reduction");
}

static runtime::Activation translateActivation(std::optional<plan::Activation> activation) {
  if (!activation)
    return runtime::Activation::None;
  switch (*activation) {
  case plan::Activation::relu:
    return runtime::Activation::Relu;
  case plan::Activation::gelu:
    return runtime::Activation::Gelu;
  case plan::Activation::gelu_tanh:
    return runtime::Activation::GeluTanh;
  }
  llvm_unreachable("unknown activation");
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

void PlanTranslator::fill(Command &command, plan::KernelOp op) {
  command.kind = CommandKind::Kernel;
  command.kernel = op.getKernel().str();
  command.parallel = op.getParallel();
  command.grain = op.getGrain();
  addRefs(command, op.getArgs());
}

void PlanTranslator::fill(Command &command, plan::GemmOp op) {
  command.kind = CommandKind::Gemm;
  command.dtype = translateDType(op, op.getDtype());
  command.refs = {translateRef(op.getA()), translateRef(op.getB()), translateRef(op.getC())};
  runtime::GemmShape &gemm = command.gemm;
  gemm.m = op.getM(), gemm.n = op.getN(), gemm.k = op.getK();
  gemm.lda = op.getLda(), gemm.ldb = op.getLdb(), gemm.ldc = op.getLdc();
  gemm.transA = op.getTransA(), gemm.transB = op.getTransB();
  gemm.beta = op.getBeta().convertToDouble();
  gemm.batch = op.getBatch();
  gemm.strideA = op.getStrideA(), gemm.strideB = op.getStrideB(), gemm.strideC = op.getStrideC();
  gemm.bias = addOptionalRef(command, op.getBias());
  gemm.residual = addOptionalRef(command, op.getResidual());
  gemm.preActivation = addOptionalRef(command, op.getPreActivation());
  gemm.activation = translateActivation(op.getActivation());
}

void PlanTranslator::addCollective(Command &command, Operation *op, FlatSymbolRefAttr communicator, StringRef unit,
                                   Type dtype) {
  command.communicator = communicators.lookup(communicator.getValue());
  command.unit = unit.str();
  command.dtype = translateDType(op, dtype);
}

void PlanTranslator::fill(Command &command, plan::AllGatherOp op) {
  command.kind = CommandKind::AllGather;
  addCollective(command, op, op.getCommAttr(), op.getUnit(), op.getDtype());
  command.counts = {static_cast<int64_t>(op.getCount())};
  command.refs = {translateRef(op.getSend()), translateRef(op.getRecv())};
}

void PlanTranslator::fill(Command &command, plan::ReduceScatterOp op) {
  command.kind = CommandKind::ReduceScatter;
  addCollective(command, op, op.getCommAttr(), op.getUnit(), op.getDtype());
  command.kinds = {translateKind(op.getKind())};
  command.counts = {static_cast<int64_t>(op.getCount())};
  command.refs = {translateRef(op.getSend()), translateRef(op.getRecv())};
}

void PlanTranslator::fill(Command &command, plan::AllReduceOp op) {
  command.kind = CommandKind::AllReduce;
  addCollective(command, op, op.getCommAttr(), op.getUnit(), op.getDtype());
  for (auto kind : op.getKinds().getAsRange<plan::ReductionKindAttr>())
    command.kinds.push_back(translateKind(kind.getValue()));
  command.counts = op.getCounts().vec();
  addRefs(command, op.getBuffers());
}

void PlanTranslator::fill(Command &command, plan::WaitOp op) {
  command.kind = CommandKind::Wait;
  command.waitFor = commands.at(op.getAwaited());
}

void PlanTranslator::fill(Command &command, plan::CopyOp op) {
  command.kind = CommandKind::Copy;
  command.bytes = op.getDst().getBytes();
  command.refs = {translateRef(op.getSrc()), translateRef(op.getDst())};
}

void PlanTranslator::fill(Command &command, plan::FillOp op) {
  command.kind = CommandKind::Fill;
  command.bytes = op.getDst().getBytes();
  command.value = static_cast<int32_t>(op.getValue());
  command.refs = {translateRef(op.getDst())};
}

void PlanTranslator::fill(Command &command, plan::CheckIndexOp op) {
  command.kind = CommandKind::CheckIndex;
  command.counts = {static_cast<int64_t>(op.getCount())};
  command.dtype = translateDType(op, op.getDtype());
  command.low = op.getLow(), command.high = op.getHigh();
  command.ignoreIndex = op.getIgnoreIndex();
  command.use = op.getUse().str();
  command.refs = {translateRef(op.getIds())};
}

Command PlanTranslator::translateCommand(plan::CommandOpInterface op) {
  Command command;
  command.stream = static_cast<int32_t>(op.getStream());
  command.location = describeSource(op.getLoc());
  llvm::TypeSwitch<Operation *>(op)
      .Case<plan::KernelOp, plan::GemmOp, plan::AllGatherOp, plan::ReduceScatterOp, plan::AllReduceOp, plan::WaitOp,
            plan::CopyOp, plan::FillOp, plan::CheckIndexOp>([&](auto op) { fill(command, op); });
  return command;
}

runtime::Buffer PlanTranslator::translateBuffer(plan::BufferOp op) {
  runtime::Buffer buffer;
  buffer.id = static_cast<int32_t>(plan.buffers.size());
  buffer.name = op.getLabel().str();
  buffer.memoryClass = plan::getClassName(op.getBufferClass()).str();
  buffer.offset = op.getOffset();
  buffer.bytes = op.getBytes();
  buffer.state = op.getState();
  buffer.location = describeSource(op.getLoc());
  return buffer;
}

FailureOr<runtime::Plan> PlanTranslator::translate() {
  for (unsigned stream = 0; stream <= plan::getMaxEnumValForStream(); ++stream)
    plan.streams.push_back(stringifyStream(static_cast<plan::Stream>(stream)).str());
  for (auto communicator : program.getOps<plan::CommunicatorOp>()) {
    std::string name = communicator.getSymName().str();
    communicators[name] = static_cast<int32_t>(plan.communicators.size());
    if (communicator.getAxes())
      for (StringRef axis : communicator.getAxesAttr().getAsValueRange<StringAttr>())
        plan.axes[name].push_back(axis.str());
    plan.communicators.push_back(std::move(name));
  }
  for (auto buffer : program.getOps<plan::BufferOp>()) {
    plan.buffers.push_back(translateBuffer(buffer));
    buffers[buffer.getSymName()] = plan.buffers.back().id;
  }
  for (auto [id, command] : llvm::enumerate(program.getOps<plan::CommandOpInterface>()))
    commands[command.getEvent()] = static_cast<int32_t>(id);
  for (auto command : program.getOps<plan::CommandOpInterface>())
    plan.commands.push_back(translateCommand(command));
  if (hasFailed)
    return failure();
  return std::move(plan);
}

FailureOr<runtime::Plan> spmd::translatePlan(plan::ProgramOp program) { return PlanTranslator(program).translate(); }
