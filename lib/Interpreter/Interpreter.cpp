//===- Interpreter.cpp - run a training step for N ranks ------------------===//

#include "spmd/Interpreter/Interpreter.h"
#include "Lockstep.h"
#include "Roles.h"
#include "dialects/Spmd/Spmd.h"

using namespace mlir;

namespace spmd::interp {

func::FuncOp findStep(ModuleOp module) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  if (!step)
    module.emitError() << "there is no function @step";
  return step;
}

FailureOr<SmallVector<GlobalTensor>> describeArguments(func::FuncOp step) {
  SmallVector<GlobalTensor> result;
  for (BlockArgument argument : step.getArguments()) {
    Attribute role = getArgumentRole(step, argument.getArgNumber());
    if (!role)
      return failure();
    auto tensors = describeRole(role, getArgumentType(step, argument.getArgNumber()), step);
    if (failed(tensors))
      return failure();
    llvm::append_range(result, *tensors);
  }
  return result;
}

namespace {

/// One run of K steps of a program.
class Run {
public:
  Run(func::FuncOp step, const Mesh &mesh, const Inputs &inputs, Options options)
      : step(step), mesh(mesh), inputs(inputs), options(options), lockstep(step, mesh, options) {}

  FailureOr<Results> run(Failure &failureKind);

private:
  LogicalResult readRoles();
  FailureOr<PerRank> argument(unsigned index, const Values &ofStep);
  LogicalResult collect(ArrayRef<PerRank> returned, Results &results, bool isLast);

  func::FuncOp step;
  const Mesh &mesh;
  const Inputs &inputs;
  Options options;
  Lockstep lockstep;
  SmallVector<Attribute> argumentRoles, resultRoles;
  /// Result that updates an argument, by argument.
  llvm::DenseMap<unsigned, unsigned> updates;
};

LogicalResult Run::readRoles() {
  llvm::DenseMap<Attribute, unsigned> byRole;
  for (unsigned i = 0, e = step.getNumArguments(); i < e; ++i) {
    argumentRoles.push_back(getArgumentRole(step, i));
    if (!argumentRoles.back())
      return failure();
    byRole[argumentRoles.back()] = i;
  }
  for (unsigned i = 0, e = step.getNumResults(); i < e; ++i) {
    resultRoles.push_back(getResultRole(step, i));
    if (!resultRoles.back())
      return failure();
    auto update = dyn_cast<UpdateAttr>(resultRoles.back());
    if (!update)
      continue;
    auto it = byRole.find(update.getArg());
    if (it == byRole.end())
      return step.emitError() << "result " << i << " updates " << update.getArg() << ", which no argument is";
    updates[it->second] = i;
  }
  return success();
}

FailureOr<PerRank> Run::argument(unsigned index, const Values &ofStep) {
  RankedTensorType type = getArgumentType(step, index);
  Attribute role = argumentRoles[index];
  auto described = describeRole(role, type, step);
  if (failed(described))
    return failure();
  SmallVector<Tensor> globals;
  for (const GlobalTensor &tensor : *described) {
    bool eachStep = isa<BatchAttr, HyperAttr>(role);
    const Values &from = eachStep ? ofStep : inputs.state;
    auto it = from.find(tensor.key);
    if (it == from.end() && !tensor.isPlace && !tensor.beginsAs.empty())
      it = from.find(tensor.beginsAs);
    // A place beside state of its kind that other parameters have: Adafactor's variance, of vectors alone.
    if (it == from.end() && (tensor.isPlace || tensor.init)) {
      globals.push_back(Tensor::full(tensor.dtype, tensor.shape, tensor.init.value_or(0)));
      continue;
    }
    if (it == from.end())
      return step.emitError() << "the inputs have no tensor '" << tensor.key << "'";
    Tensor value = it->second.converted(tensor.dtype);
    if (value.shape() != ShapeRef(tensor.shape)) {
      InFlightDiagnostic diag = step.emitError();
      diag << "the input '" << tensor.key << "' has shape [";
      llvm::interleaveComma(value.shape(), diag);
      diag << "], the program wants [";
      llvm::interleaveComma(tensor.shape, diag);
      return diag << "]";
    }
    if (options.precision == Precision::program)
      value = value.rounded();
    globals.push_back(std::move(value));
  }
  return shard(role, type, step, globals, mesh);
}

/// Puts the ranks' results together and files them by key.
LogicalResult Run::collect(ArrayRef<PerRank> returned, Results &results, bool isLast) {
  for (auto [i, role] : llvm::enumerate(resultRoles)) {
    bool isUpdate = isa<UpdateAttr>(role);
    if (isUpdate && !isLast)
      continue;
    RankedTensorType type = getResultType(step, i);
    auto described = describeRole(role, type, step);
    auto globals = unshard(role, type, step, returned[i], mesh);
    if (failed(described) || failed(globals))
      return failure();
    NamedResults &into = isUpdate ? results.state : results.steps.back();
    for (auto [tensor, value] : llvm::zip_equal(*described, *globals))
      if (!tensor.isPlace && (!isUpdate || inputs.state.count(tensor.key)))
        into[tensor.key] = {tensor.kind, std::move(value)};
  }
  return success();
}

FailureOr<Results> Run::run(Failure &failureKind) {
  failureKind = Failure::input;
  if (failed(readRoles()) || failed(lockstep.checkSupported()))
    return failure();
  Results results;
  SmallVector<PerRank> persistent(step.getNumArguments());
  for (auto [number, ofStep] : llvm::enumerate(inputs.steps)) {
    SmallVector<PerRank> arguments;
    failureKind = Failure::input;
    for (unsigned i = 0, e = step.getNumArguments(); i < e; ++i) {
      if (persistent[i].empty() || isa<BatchAttr, HyperAttr>(argumentRoles[i])) {
        FailureOr<PerRank> value = argument(i, ofStep);
        if (failed(value))
          return failure();
        persistent[i] = std::move(*value);
      }
      arguments.push_back(persistent[i]);
    }
    auto returned = lockstep.run(arguments);
    failureKind = lockstep.failureKind();
    if (failed(returned))
      return failure();
    failureKind = Failure::wrong;
    results.steps.emplace_back();
    if (failed(collect(*returned, results, number + 1 == inputs.steps.size())))
      return failure();
    for (auto [argument, result] : updates)
      persistent[argument] = (*returned)[result];
  }
  results.statistics = lockstep.statistics();
  return results;
}

} // namespace

FailureOr<Results> interpret(ModuleOp module, const Inputs &inputs, const Options &options, Failure &failureKind) {
  failureKind = Failure::input;
  func::FuncOp step = findStep(module);
  FailureOr<Mesh> mesh = Mesh::of(module);
  if (!step || failed(mesh))
    return failure();
  if (!isPartitioned(step) && mesh->hasTensorAxis)
    return step.emitError() << "has been cut over the tensor axis and not over the others; run spmd-partition first";
  if (!isPartitioned(step))
    *mesh = Mesh();
  return Run(step, *mesh, inputs, options).run(failureKind);
}

bool isPartitioned(func::FuncOp step) {
  for (BlockArgument argument : step.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (type && isa_and_nonnull<ShardingAttr>(type.getEncoding()))
      return true;
    Attribute role = step.getArgAttr(argument.getArgNumber(), "spmd.arg");
    if (isa_and_nonnull<ShardAttr, TableAttr>(role))
      return true;
  }
  return false;
}

FailureOr<SmallVector<Tensor>> callFunction(func::FuncOp function, ArrayRef<Tensor> arguments, const Options &options,
                                            Failure &failureKind) {
  Mesh mesh;
  Lockstep lockstep(function, mesh, options);
  SmallVector<PerRank> perRank;
  for (const Tensor &argument : arguments)
    perRank.push_back({argument});
  failureKind = Failure::input;
  if (failed(lockstep.checkSupported()))
    return failure();
  auto returned = lockstep.run(perRank);
  failureKind = lockstep.failureKind();
  if (failed(returned))
    return failure();
  SmallVector<Tensor> results;
  for (PerRank &value : *returned)
    results.push_back(std::move(value[0]));
  return results;
}

} // namespace spmd::interp
