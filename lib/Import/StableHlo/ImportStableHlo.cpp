//===- ImportStableHlo.cpp - A step of StableHLO as a step package --------===//

#include "../ImportStep.h"
#include "../Package/WriteStep.h"
#include "Lowering.h"
#include "Roles.h"
#include "spmd/Import/Import.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <set>

using namespace mlir;
using namespace spmd;
using namespace spmd::stablehlo;
using step::InputKind;

namespace {
/// One argument of the function.
struct Argument {
  Path path;
  step::Input input;
  unsigned number = 0; ///< in the function
};

class StableHloImporter {
public:
  StableHloImporter(func::FuncOp func, Roles &roles, step::Step &step) : func(func), roles(roles), step(step) {}
  LogicalResult run(ModuleOp module);

private:
  LogicalResult readArguments();
  FailureOr<step::Input> readRole(const Path &path, const step::TensorSpec &spec);
  LogicalResult bindInputs(Lowering &lowering);
  LogicalResult addResults(Lowering &lowering, ArrayRef<Tensor> results);
  void declareParameters();
  void addModules();
  InFlightDiagnostic error() { return emitError(func.getLoc()); }

  func::FuncOp func;
  Roles &roles;
  step::Step &step;
  std::vector<Argument> arguments; ///< in the order of the step's inputs
  std::set<std::string> updated;   ///< names of parameters
};
} // namespace

/// The name that JAX gave an argument; by its number where there is none.
static Path getArgumentPath(BlockArgument arg) {
  if (auto name = dyn_cast<NameLoc>(arg.getLoc()))
    return parsePath(name.getName().getValue());
  return {"arg" + std::to_string(arg.getArgNumber())};
}

FailureOr<step::Input> StableHloImporter::readRole(const Path &path, const step::TensorSpec &spec) {
  Path rest;
  const ArgumentRole *role = roles.findArgument(path, rest);
  if (!role) {
    InFlightDiagnostic diag = error() << roles.getFile() << ": /arguments: no role for argument '" << joinPath(path)
                                      << "'";
    diag.attachNote() << "arguments have names when the step is printed with get_asm(print_generic_op_form=True, "
                         "enable_debug_info=True)";
    return diag;
  }
  step::Input input;
  input.kind = role->kind;
  input.spec = spec;
  input.pointer = "argument " + joinPath(path);
  input.name = joinPath(path);
  switch (role->kind) {
  case InputKind::param:
    // The name of the argument itself is no part of a parameter's.
    input.name = joinPath(rest.empty() ? path : rest);
    break;
  case InputKind::state:
    input.name = role->state;
    input.of = joinPath(rest);
    input.number = role->number;
    break;
  case InputKind::hyper:
    if (!spec.shape.empty() || !isFloating(spec.dtype))
      return error() << "argument '" << joinPath(path) << "' is " << step::formatSpec(spec)
                     << ", and of kind hyper, which is one floating number";
    input.name = role->state;
    input.number = role->number;
    input.spec.dtype = runtime::DType::F64;
    break;
  case InputKind::batch:
    input.batchDim = role->batchDim;
    if (input.batchDim >= static_cast<int64_t>(spec.shape.size())) {
      InFlightDiagnostic diag = error() << "argument '" << joinPath(path) << "' is " << step::formatSpec(spec)
                                        << ", which has no batch_dim " << input.batchDim;
      diag.attachNote() << "{\"kind\": \"batch\", \"shared\": true} is one that all ranks have";
      return diag;
    }
    break;
  default:
    break;
  }
  return input;
}

LogicalResult StableHloImporter::readArguments() {
  std::map<InputKind, std::vector<Argument>> byKind; // a step's inputs come in the order of their kinds
  for (BlockArgument arg : func.getArguments()) {
    Argument argument;
    argument.path = getArgumentPath(arg);
    argument.number = arg.getArgNumber();
    std::optional<step::TensorSpec> spec = getSpec(arg.getType(), arg.getLoc());
    if (!spec)
      return failure();
    FailureOr<step::Input> input = readRole(argument.path, *spec);
    if (failed(input))
      return failure();
    argument.input = *input;
    byKind[argument.input.kind].push_back(std::move(argument));
  }
  for (auto &[kind, some] : byKind)
    llvm::append_range(arguments, some);
  std::set<std::string> names;
  for (const Argument &argument : arguments) {
    const step::Input &input = argument.input;
    if (!names.insert(std::to_string(static_cast<int>(input.kind)) + input.name + "/" + input.of).second)
      return error() << "two arguments are '" << input.name << "'" << (input.of.empty() ? "" : " of '") << input.of
                     << (input.of.empty() ? "" : "'");
    auto isParameter = [&](const Argument &other) {
      return other.input.kind == InputKind::param && other.input.name == input.of &&
             other.input.spec.shape == input.spec.shape;
    };
    if (input.kind == InputKind::state && llvm::none_of(arguments, isParameter)) {
      InFlightDiagnostic diag = error() << "argument '" << joinPath(argument.path) << "' is state of parameter '"
                                        << input.of << "', and there is no such parameter of its shape";
      diag.attachNote() << "a counter, and whatever is of no parameter, is of kind buffer";
      return diag;
    }
  }
  return success();
}

static std::string getParent(StringRef name) {
  size_t dot = name.rfind('.');
  return dot == StringRef::npos ? "" : name.take_front(dot).str();
}

LogicalResult StableHloImporter::bindInputs(Lowering &lowering) {
  for (Argument &argument : arguments) {
    argument.input.id = lowering.addInput(argument.input.spec);
    if (argument.input.kind == InputKind::param)
      lowering.setModule(argument.input.id, getParent(argument.input.name));
    step.inputs.push_back(argument.input);
    lowering.bind(func.getArgument(argument.number), argument.input.id);
  }
  // Numbers that schedulers move are f64 in a step.
  for (const Argument &argument : arguments)
    if (argument.input.kind == InputKind::hyper) {
      BlockArgument arg = func.getArgument(argument.number);
      lowering.bind(arg, lowering.cast(argument.input.id, getSpec(arg.getType(), arg.getLoc())->dtype));
    }
  return success();
}

LogicalResult StableHloImporter::addResults(Lowering &lowering, ArrayRef<Tensor> results) {
  std::vector<std::pair<int64_t, int64_t>> updates;
  std::string tree;
  for (auto [index, result] : llvm::enumerate(results)) {
    auto info = func.getResultAttrOfType<StringAttr>(index, "jax.result_info");
    Path path = parsePath(info ? info.getValue() : "[" + std::to_string(index) + "]");
    if (info && info.getValue().starts_with("result"))
      path.erase(path.begin());
    std::string name = joinPath(path);
    Path rest;
    const ResultRole *role = roles.findResult(path, rest);
    if (!role)
      return error() << roles.getFile() << ": /results: no role for result '" << name << "'";
    Tensor tensor = result;
    int64_t id = lowering.use(tensor);
    // What a step gives back, and what an update reads, is as it was before any update.
    if (id < static_cast<int64_t>(step.inputs.size()))
      id = lowering.unary("aten.clone.default", id);
    if (role->kind == ResultRole::Kind::update) {
      Path target = role->updates;
      target.insert(target.end(), rest.begin(), rest.end());
      auto found = llvm::find_if(arguments, [&](const Argument &argument) { return argument.path == target; });
      if (found == arguments.end())
        return error() << roles.getFile() << ": /results: result '" << name << "' updates argument '"
                       << joinPath(target) << "', which the step does not have";
      const step::Input &input = found->input;
      if (input.kind == InputKind::batch || input.kind == InputKind::hyper || input.kind == InputKind::constant)
        return error() << "result '" << name << "' updates argument '" << joinPath(target)
                       << "', which is no param, state or buffer";
      if (!(input.spec == result.spec))
        return error() << "result '" << name << "' is " << step::formatSpec(result.spec) << ", and updates argument '"
                       << joinPath(target) << "', " << step::formatSpec(input.spec);
      if (llvm::any_of(updates, [&](const auto &update) { return update.first == input.id; }))
        return error() << "two results update argument '" << joinPath(target) << "'";
      bool isChanged = result.id != input.id;
      if (isChanged)
        updates.emplace_back(input.id, id);
      if (isChanged && input.kind == InputKind::param)
        updated.insert(input.name);
      continue;
    }
    bool isLoss = role->kind == ResultRole::Kind::loss;
    if (isLoss && (!result.spec.shape.empty() || !isFloating(result.spec.dtype)))
      return error() << "the loss, result '" << name << "', is " << step::formatSpec(result.spec)
                     << "; expected one floating number";
    tree +=
        (tree.empty() ? "" : ", ") + ("[\"" + name + "\", {\"output\": ") + std::to_string(step.outputs.size()) + "}]";
    step.outputs.push_back({isLoss, name, id});
  }
  step.resultTree = "{\"dict\": [" + tree + "]}";
  if (llvm::count_if(step.outputs, [](const step::Output &output) { return output.isLoss; }) != 1)
    return error() << roles.getFile() << ": /results: one result must be the \"loss\"";
  for (auto [target, source] : updates)
    lowering.emitUpdate(target, source);
  return success();
}

void StableHloImporter::declareParameters() {
  step::ParamGroup &group = step.groups.emplace_back();
  for (const Argument &argument : arguments) {
    const step::Input &input = argument.input;
    if (input.kind == InputKind::param) {
      bool isTrained = updated.count(input.name);
      step.parameters.push_back({input.name, {}, input.spec, isTrained});
      if (isTrained)
        group.parameters.push_back(input.name);
    } else if (input.kind == InputKind::buffer) {
      step.buffers.push_back({input.name, {}, input.spec});
    } else if (input.kind == InputKind::hyper && input.number) {
      step::Option option;
      option.kind = step::Option::Kind::real;
      option.real = *input.number;
      group.options.emplace_back(input.name, option);
    }
  }
}

/// What policies call the class of a module, for which JAX has none: its name without a number at its end, so that
/// blocks_0 and blocks_1, and blocks.0 and blocks.1, are of one class.
static std::string getClass(StringRef module) {
  if (module.empty())
    return "Step";
  StringRef name = module;
  while (true) {
    StringRef last = name.substr(name.rfind('.') == StringRef::npos ? 0 : name.rfind('.') + 1);
    StringRef word = last.rtrim("0123456789").rtrim("_");
    if (!word.empty())
      return word.str();
    if (name.size() == last.size())
      return "Module";
    name = name.drop_back(last.size() + 1);
  }
}

void StableHloImporter::addModules() {
  std::vector<step::TreeModule> tree(1);
  // Preorder: a module is added behind the last one below its parent.
  auto find = [&](const std::string &name) {
    return std::find_if(tree.begin(), tree.end(), [&](const step::TreeModule &entry) { return entry.name == name; });
  };
  std::function<void(const std::string &)> add = [&](const std::string &name) {
    if (find(name) != tree.end())
      return;
    std::string parent = getParent(name);
    add(parent);
    auto at = std::next(find(parent));
    find(parent)->children.push_back(name);
    while (at != tree.end() && (parent.empty() || StringRef(at->name).starts_with(parent + ".")))
      ++at;
    step::TreeModule module;
    module.name = name;
    tree.insert(at, module);
  };
  for (const step::Parameter &parameter : step.parameters) {
    std::string owner = getParent(parameter.name);
    add(owner);
    find(owner)->parameters.push_back(parameter.name);
  }
  for (const step::Buffer &buffer : step.buffers)
    tree[0].buffers.push_back(buffer.name);
  for (step::TreeModule &module : tree)
    module.className = "jax." + getClass(module.name);
  step.moduleTree = std::move(tree);
}

static unsigned phaseNumber(StringRef phase) { return phase == "forward" ? 0 : phase == "backward" ? 1 : 2; }

/// Leaves out what nobody needs, brings what an earlier phase needs to that phase, and numbers values in their order.
static void orderNodes(step::Step &step) {
  constexpr unsigned kUnused = 3;
  static constexpr const char *phases[] = {"forward", "backward", "optimizer"};
  llvm::DenseMap<int64_t, unsigned> needed; ///< by value: the earliest phase that needs it
  auto need = [&](int64_t id, unsigned phase) {
    auto [found, isNew] = needed.try_emplace(id, phase);
    found->second = std::min(found->second, phase);
  };
  for (const step::Output &output : step.outputs)
    need(output.value, output.isLoss ? 0 : 2);
  std::vector<step::Node> byPhase[kUnused]; ///< each in reverse
  for (step::Node &node : llvm::reverse(step.nodes)) {
    auto found = needed.find(node.results[0]->id);
    bool isUpdate = !node.mutates.empty();
    unsigned phase = found == needed.end() ? kUnused : found->second;
    if (phase == kUnused && !isUpdate)
      continue;
    bool hasOperands = llvm::any_of(node.args, [](const step::Arg &arg) {
      return arg.kind == step::Arg::Kind::value || arg.kind == step::Arg::Kind::values;
    });
    // What is made of nothing belongs to whoever needs it.
    phase = isUpdate ? 2 : hasOperands ? std::min(phase, phaseNumber(node.phase)) : phase;
    node.phase = phases[phase];
    for (const step::Arg &arg : node.args) {
      if (arg.kind == step::Arg::Kind::value)
        need(arg.integer, phase);
      if (arg.kind == step::Arg::Kind::values)
        for (int64_t id : arg.integers)
          need(id, phase);
    }
    byPhase[phase].push_back(std::move(node));
  }
  std::vector<step::Node> nodes;
  for (std::vector<step::Node> &some : byPhase)
    for (step::Node &node : llvm::reverse(some))
      nodes.push_back(std::move(node));

  llvm::DenseMap<int64_t, int64_t> numbers;
  for (const step::Input &input : step.inputs)
    numbers[input.id] = input.id;
  step.nodes.clear();
  for (step::Node &node : nodes) {
    for (step::Arg &arg : node.args) {
      if (arg.kind == step::Arg::Kind::value)
        arg.integer = numbers.lookup(arg.integer);
      if (arg.kind == step::Arg::Kind::values)
        for (int64_t &id : arg.integers)
          id = numbers.lookup(id);
    }
    int64_t number = numbers.size();
    numbers[node.results[0]->id] = number;
    node.results[0]->id = number;
    node.pointer = "/nodes/" + std::to_string(step.nodes.size());
    step.nodes.push_back(std::move(node));
  }
  for (step::Output &output : step.outputs)
    output.value = numbers.lookup(output.value);
}

LogicalResult StableHloImporter::run(ModuleOp module) {
  Lowering lowering(step, module);
  SmallVector<Tensor> results;
  if (failed(readArguments()) || failed(bindInputs(lowering)) ||
      failed(lowering.lowerBlock(func.getBody().front(), results)) || failed(addResults(lowering, results)))
    return failure();
  if (std::string unused = roles.findUnused(); !unused.empty())
    return error() << unused;
  declareParameters();
  addModules();
  orderNodes(step);
  return success();
}

/// Reads the text of a step; dialects that nobody registered are taken as they are.
static OwningOpRef<ModuleOp> parseText(StringRef path, MLIRContext *context) {
  bool allowed = context->allowsUnregisteredDialects();
  context->allowUnregisteredDialects();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(path, context);
  context->allowUnregisteredDialects(allowed);
  if (!module)
    emitRemark(UnknownLoc::get(context))
        << "StableHLO is read in MLIR's generic form: jax.jit(step).lower(...).compiler_ir(\"stablehlo\").operation"
           ".get_asm(print_generic_op_form=True, enable_debug_info=True)";
  return module;
}

OwningOpRef<ModuleOp> spmd::importStableHlo(StringRef path, StringRef rolesPath, MLIRContext *context,
                                            std::string *package) {
  context->loadDialect<func::FuncDialect>();
  auto fail = [&](const Twine &message) {
    emitError(UnknownLoc::get(context)) << message;
    return OwningOpRef<ModuleOp>();
  };
  runtime::Expected<Roles> roles = Roles::read(rolesPath.str());
  if (!roles)
    return fail(roles.error().message);
  OwningOpRef<ModuleOp> module = parseText(path, context);
  if (!module)
    return {};
  auto func = module->lookupSymbol<func::FuncOp>("main");
  if (!func || func.isExternal())
    return fail(path + ": no function '@main', which is the step");
  step::Step step;
  step.fileName = path.str();
  step.torch = "none";
  step.name = roles->getName();
  step.optimizer = "jax";
  if (failed(StableHloImporter(func, *roles, step).run(*module)))
    return {};
  OwningOpRef<ModuleOp> result = importStep(step, context);
  if (result && package) {
    llvm::raw_string_ostream os(*package);
    step::writeStep(step, os);
  }
  return result;
}
