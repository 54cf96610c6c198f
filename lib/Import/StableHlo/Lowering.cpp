//===- Lowering.cpp - StableHLO ops as nodes of a step --------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Path.h"

#include <map>

using namespace mlir;
using namespace spmd;
using namespace spmd::stablehlo;

static step::Arg makeArg(StringRef name, Kind kind) {
  step::Arg arg;
  arg.name = name.str();
  arg.kind = kind;
  return arg;
}

step::Arg spmd::stablehlo::makeValue(StringRef name, int64_t id) {
  step::Arg arg = makeArg(name, Kind::value);
  arg.integer = id;
  return arg;
}

step::Arg spmd::stablehlo::makeInteger(StringRef name, int64_t value) {
  step::Arg arg = makeArg(name, Kind::integer);
  arg.integer = value;
  return arg;
}

step::Arg spmd::stablehlo::makeIntegers(StringRef name, ArrayRef<int64_t> values) {
  step::Arg arg = makeArg(name, Kind::integers);
  arg.integers.assign(values.begin(), values.end());
  return arg;
}

step::Arg spmd::stablehlo::makeNumber(StringRef name, const Number &number) {
  step::Arg arg = makeArg(name, number.kind);
  arg.real = number.real;
  arg.integer = number.integer;
  arg.boolean = number.integer != 0;
  return arg;
}

step::Arg spmd::stablehlo::makeBoolean(StringRef name, bool value) {
  step::Arg arg = makeArg(name, Kind::boolean);
  arg.boolean = value;
  return arg;
}

Ints spmd::stablehlo::without(ArrayRef<int64_t> values, ArrayRef<int64_t> dims) {
  Ints rest;
  for (auto [index, value] : llvm::enumerate(values))
    if (!llvm::is_contained(dims, static_cast<int64_t>(index)))
      rest.push_back(value);
  return rest;
}

Ints spmd::stablehlo::join(std::initializer_list<ArrayRef<int64_t>> lists) {
  Ints all;
  for (ArrayRef<int64_t> list : lists)
    all.append(list.begin(), list.end());
  return all;
}

int64_t spmd::stablehlo::product(ArrayRef<int64_t> values) {
  int64_t total = 1;
  for (int64_t value : values)
    total *= value;
  return total;
}

Ints spmd::stablehlo::invert(ArrayRef<int64_t> dims) {
  Ints inverse(dims.size());
  for (auto [index, dim] : llvm::enumerate(dims))
    inverse[dim] = index;
  return inverse;
}

std::optional<TensorSpec> spmd::stablehlo::getSpec(Type type, Location loc) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  std::string element;
  if (tensor) {
    Type elementType = tensor.getElementType();
    llvm::raw_string_ostream(element) << elementType;
    if (elementType.isUnsignedInteger(8))
      element = "u8";
  }
  std::optional<runtime::DType> dtype = runtime::parseDType(element);
  if (!tensor || !tensor.hasStaticShape() || !dtype) {
    InFlightDiagnostic error = emitError(loc) << "type " << type << " is not supported";
    if (tensor && !tensor.hasStaticShape())
      error.attachNote() << "shapes must be known: lower the step with arrays, or jax.ShapeDtypeStruct of their sizes";
    else
      error.attachNote() << "expected tensors of f32, f64, f16, bf16, i64, i32, i16, i8, ui8 or i1; random keys are "
                            "ui32: draw outside of the step, and pass the random values as a batch argument";
    return {};
  }
  return TensorSpec{{tensor.getShape().begin(), tensor.getShape().end()}, *dtype};
}

TensorSpec spmd::stablehlo::specOf(Operation *op) { return *getSpec(op->getResult(0).getType(), op->getLoc()); }

Ints spmd::stablehlo::shapeOf(Value value) { return Ints(cast<RankedTensorType>(value.getType()).getShape()); }

Lowering::Lowering(step::Step &step, ModuleOp module) : step(step), symbols(module) {}

int64_t Lowering::addInput(TensorSpec spec) {
  specs.push_back(std::move(spec));
  return specs.size() - 1;
}

int64_t Lowering::emit(StringRef op, std::vector<step::Arg> args, TensorSpec result) {
  step::Node node;
  node.op = op.str();
  node.phase = phase;
  node.stack = stack;
  for (const step::Arg &arg : args)
    if (auto found = arg.kind == Kind::value ? modules.find(arg.integer) : modules.end(); found != modules.end())
      node.module = found->second;
  node.args = std::move(args);
  specs.push_back(result);
  int64_t id = specs.size() - 1;
  node.results.push_back(step::Result{id, std::move(result)});
  step.nodes.push_back(std::move(node));
  return id;
}

void Lowering::emitUpdate(int64_t target, int64_t source) {
  phase = "optimizer";
  stack = {};
  emit("aten.copy_.default", {makeValue("self", target), makeValue("src", source), makeBoolean("non_blocking", false)},
       specs[target]);
  step.nodes.back().mutates = {"self"};
  step.nodes.back().viewOf = "self";
}

int64_t Lowering::full(const TensorSpec &spec, const Number &number) {
  return emit("aten.full.default",
              {makeIntegers("size", ArrayRef(spec.shape.data(), spec.shape.size())), makeNumber("fill_value", number)},
              spec);
}

int64_t Lowering::useScalar(Tensor &tensor) {
  if (!tensor.isRepeated())
    return use(tensor);
  if (tensor.scalar < 0)
    tensor.scalar = full({{}, tensor.spec.dtype}, *tensor.number);
  return tensor.scalar;
}

int64_t Lowering::use(Tensor &tensor) {
  if (tensor.id < 0)
    tensor.id = tensor.number ? full(tensor.spec, *tensor.number)
                              : expand(tensor.scalar, ArrayRef(tensor.spec.shape.data(), tensor.spec.shape.size()));
  return tensor.id;
}

static TensorSpec reshaped(const TensorSpec &spec, ArrayRef<int64_t> shape) {
  return {{shape.begin(), shape.end()}, spec.dtype};
}

int64_t Lowering::view(int64_t id, ArrayRef<int64_t> shape) {
  TensorSpec spec = reshaped(specs[id], shape);
  if (spec == specs[id])
    return id;
  return emit("aten.view.default", {makeValue("self", id), makeIntegers("size", shape)}, spec);
}

int64_t Lowering::permute(int64_t id, ArrayRef<int64_t> dims) {
  if (llvm::equal(dims, llvm::seq<int64_t>(0, dims.size())))
    return id;
  Ints shape;
  for (int64_t dim : dims)
    shape.push_back(specs[id].shape[dim]);
  return emit("aten.permute.default", {makeValue("self", id), makeIntegers("dims", dims)}, reshaped(specs[id], shape));
}

int64_t Lowering::expand(int64_t id, ArrayRef<int64_t> shape) {
  TensorSpec spec = reshaped(specs[id], shape);
  if (spec == specs[id])
    return id;
  return emit("aten.expand.default",
              {makeValue("self", id), makeIntegers("size", shape), makeBoolean("implicit", false)}, spec);
}

int64_t Lowering::cast(int64_t id, runtime::DType dtype) {
  if (specs[id].dtype == dtype)
    return id;
  step::Arg arg = makeArg("dtype", Kind::dtype);
  arg.dtype = dtype;
  return emit("aten._to_copy.default", {makeValue("self", id), arg}, {specs[id].shape, dtype});
}

int64_t Lowering::slice(int64_t id, int64_t dim, int64_t start, int64_t end, int64_t step) {
  TensorSpec spec = specs[id];
  if (start == 0 && end == spec.shape[dim] && step == 1)
    return id;
  spec.shape[dim] = (end - start + step - 1) / step;
  return emit("aten.slice.Tensor",
              {makeValue("self", id), makeInteger("dim", dim), makeInteger("start", start), makeInteger("end", end),
               makeInteger("step", step)},
              spec);
}

int64_t Lowering::scalarOp(StringRef op, int64_t id, const Number &number) {
  std::vector<step::Arg> args{makeValue("self", id), makeNumber("other", number)};
  if (op.starts_with("aten.add") || op.starts_with("aten.sub") || op.starts_with("aten.rsub"))
    args.push_back(makeInteger("alpha", 1));
  return emit(op, std::move(args), specs[id]);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// The names of locations from the outside in: JAX keeps there which transformations an op comes from, as in
/// "jit(step)/transpose(jvp())/mul".
static void appendNames(Location loc, std::string &names) {
  if (auto name = dyn_cast<NameLoc>(loc))
    names += "/" + name.getName().str();
  else if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      appendNames(part, names);
}

/// Frames, the innermost first.
static void appendFrames(Location loc, StringRef function, SmallVectorImpl<step::Frame> &frames) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return appendFrames(name.getChildLoc(), name.getName(), frames);
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    appendFrames(call.getCallee(), function, frames);
    return appendFrames(call.getCaller(), "", frames);
  }
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    if (!fused.getLocations().empty())
      appendFrames(fused.getLocations().front(), function, frames);
    return;
  }
  // A machine's folders are no part of a step.
  if (auto file = dyn_cast<FileLineColRange>(loc))
    frames.push_back({llvm::sys::path::filename(file.getFilename().getValue()).str(), function.str(),
                      static_cast<int64_t>(file.getStartLine())});
}

std::optional<int64_t> Lowering::getStack(Location loc) {
  SmallVector<step::Frame> frames;
  appendFrames(loc, "", frames);
  if (frames.empty())
    return {};
  std::vector<std::pair<std::string, int64_t>> key;
  for (const step::Frame &frame : frames)
    key.emplace_back(frame.file + ":" + frame.function, frame.line);
  auto [found, isNew] = stacks.try_emplace(key, step.stacks.size());
  if (isNew)
    step.stacks.emplace_back(frames.rbegin(), frames.rend());
  return found->second;
}

/// [Note: phases]
/// Forward, backward and optimizer say where parameters are gathered, not what is computed, so a hint is enough: the
/// names that JAX's transformations leave. What is neither of jvp nor of its transpose is taken for the optimizer's;
/// whatever something earlier needs is moved to that phase in the end, and what the loss needs is forward.
static StringRef getPhase(StringRef names) {
  if (names.contains("transpose("))
    return "backward";
  return names.contains("jvp(") ? "forward" : "optimizer";
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static const HandlerTable &getHandlers() {
  static const HandlerTable table = [] {
    HandlerTable entries;
    addElementwiseHandlers(entries);
    addMovementHandlers(entries);
    addReductionHandlers(entries);
    addProductHandlers(entries);
    addIndexingHandlers(entries);
    return entries;
  }();
  return table;
}

/// What to do instead of an op that cannot be in a step.
static StringRef getHint(StringRef op) {
  if (op == "stablehlo.while")
    return "loops must be unrolled: jax.lax.scan(..., unroll=True), jax.lax.fori_loop(..., unroll=True), or a loop in "
           "Python";
  if (op == "stablehlo.if" || op == "stablehlo.case")
    return "both sides must be computed: jnp.where instead of jax.lax.cond and jax.lax.switch";
  if (op.starts_with("stablehlo.rng"))
    return "draw outside of the step, and pass the random values as a batch argument";
  if (op.starts_with("stablehlo.all_") || op == "stablehlo.reduce_scatter" || op == "stablehlo.collective_permute")
    return "lower the step of one device, on the whole batch: spmd-compile distributes it";
  if (op == "stablehlo.dynamic_update_slice" || op == "stablehlo.dynamic_slice")
    return "indices that are computed select rows by indexing with an array: x[ids]";
  if (op == "stablehlo.sort" || op == "chlo.top_k")
    return "sort outside of the step";
  return "docs/stablehlo.md lists the ops that are known";
}

LogicalResult Lowering::inlineCall(Operation *op, StringRef name) {
  auto callee = symbols.lookup<func::FuncOp>(name);
  if (!callee || callee.isExternal())
    return opError(op) << "function '@" << name << "' is not in the file";
  for (Operation *outer : calls)
    if (callee->isAncestor(outer))
      return opError(op) << "function '@" << name << "' calls itself";
  if (callee->isAncestor(op))
    return opError(op) << "function '@" << name << "' calls itself";
  Block &body = callee.getBody().front();
  if (body.getNumArguments() != op->getNumOperands() || callee.getNumResults() != op->getNumResults())
    return opError(op) << "function '@" << name << "' has other arguments or results than its call";
  for (auto [arg, operand] : llvm::zip_equal(body.getArguments(), op->getOperands()))
    bind(arg, get(operand));
  SmallVector<Tensor> results;
  calls.push_back(op);
  LogicalResult lowered = lowerBlock(body, results);
  calls.pop_back();
  if (failed(lowered))
    return failure();
  for (auto [result, tensor] : llvm::zip(op->getResults(), results))
    bind(result, tensor);
  return success();
}

/// Nobody verified the op: that the file's types are those of what it became is seen here.
LogicalResult Lowering::checkResults(Operation *op) {
  for (Value result : op->getResults()) {
    TensorSpec said = *getSpec(result.getType(), op->getLoc()), found = get(result).spec;
    if (!(said == found))
      return opError(op) << "returns " << step::formatSpec(found) << ", expected from the file " << step::formatSpec(said);
  }
  return success();
}

LogicalResult Lowering::lowerOp(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (auto call = dyn_cast<func::CallOp>(op))
    return inlineCall(op, call.getCallee());
  auto found = getHandlers().find(name);
  if (found == getHandlers().end()) {
    InFlightDiagnostic error = emitError(op->getLoc()) << "'" << name << "' is not supported";
    error.attachNote() << getHint(name);
    return error;
  }
  for (Type type : op->getResultTypes())
    if (!getSpec(type, op->getLoc()))
      return failure();
  // What one call of a function leaves known of another one's values is not of this one.
  for (Value result : op->getResults())
    tensors.erase(result);
  if (failed(found->second(*this, op)))
    return failure();
  return checkResults(op);
}

LogicalResult Lowering::lowerBlock(Block &block, SmallVectorImpl<Tensor> &results) {
  for (Operation &op : block.without_terminator()) {
    // Inside a function that JAX outlined, places are relative to its call.
    std::string names;
    std::optional<int64_t> outer;
    for (Operation *call : calls) {
      appendNames(call->getLoc(), names);
      if (!outer)
        outer = getStack(call->getLoc());
    }
    appendNames(op.getLoc(), names);
    phase = getPhase(names).str();
    stack = getStack(op.getLoc());
    if (outer)
      stack = outer;
    if (failed(lowerOp(&op)))
      return failure();
  }
  for (Value operand : block.getTerminator()->getOperands())
    results.push_back(get(operand));
  return success();
}
