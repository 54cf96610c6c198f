//===- Functionalize.cpp - In-place programs as values --------------------===//

#include "Functionalize.h"
#include "Normalize/Normalize.h"

#include "dialects/Aten/TensorType.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace spmd;
using Kind = step::Arg::Kind;

std::string spmd::functionalName(StringRef op, bool inPlace) {
  std::string library;
  if (!op.consume_front("aten.") && !op.consume_front("spmd.")) {
    auto [name, rest] = op.split('.');
    library = name.str() + "::";
    op = rest;
  }
  auto [name, overload] = op.split('.');
  if (inPlace)
    name.consume_back("_");
  std::string packet = library + name.str();
  // The overload that writes a scalar into a tensor has another name.
  if (overload == "default" || overload.empty())
    return packet;
  return packet + "." + overload.str();
}

void Functionalizer::bindInput(int64_t id, Value value) {
  Handle &handle = handles[id];
  handle.value = value;
  handle.type = typeOf(value);
  handle.root = id;
  generations[id] = 0;
}

Call Functionalizer::bind(const step::Node &node, const step::Node *replayOf) {
  Call call;
  call.op = functionalName(node.op, !node.mutates.empty());
  for (const step::Arg &arg : node.args) {
    BoundArg &bound = call.args.emplace_back();
    bound.literal = arg;
    // A replayed view gets its tensor from the caller.
    if (replayOf && arg.name == replayOf->viewOf)
      continue;
    if (arg.kind == Kind::value)
      bound.values.push_back(read(arg.integer));
    if (arg.kind == Kind::values)
      for (int64_t id : arg.integers)
        bound.values.push_back(id < 0 ? Value() : read(id));
  }
  return call;
}

Value Functionalizer::replay(const Handle &view, Value parent) {
  const step::Node &maker = *view.maker;
  if (!maker.mutates.empty())
    return parent; // what an in-place op returned is what it wrote
  Call call = bind(maker, &maker);
  call.find(maker.viewOf)->values = {parent};
  for (const std::optional<step::Result> &result : maker.results)
    call.resultTypes.push_back(result ? getTensorType(result->spec, emitter.builder.getContext()) : RankedTensorType());
  SmallVector<Value> results;
  if (failed(emitCall(emitter, call, results)))
    return {};
  return results[view.result];
}

Value Functionalizer::read(int64_t id) {
  // Copied: reading the parent may grow the map.
  Handle handle = handles.lookup(id);
  if (handle.generation == generations.lookup(handle.root))
    return handle.value;
  Value parent = read(handle.parent);
  if (!parent)
    return {};
  Value value = replay(handle, parent);
  Handle &fresh = handles[id];
  fresh.value = value;
  fresh.generation = generations.lookup(handle.root);
  return value;
}

Value Functionalizer::writeThrough(const Handle &view, Value parent, Value value) {
  RankedTensorType type = typeOf(parent);
  const step::Node &maker = *view.maker;
  if (!maker.mutates.empty())
    return value;
  Call call = bind(maker, &maker);
  int64_t rank = type.getRank();
  enum class Inverse { same, view, permute, slice, select, split, diagonal, strided, unknown };
  auto inverse =
      llvm::StringSwitch<Inverse>(call.op)
          .Cases({"detach", "alias"}, Inverse::same)
          .Cases({"view", "_unsafe_view", "unsqueeze", "squeeze", "squeeze.dim", "squeeze.dims", "_reshape_alias"},
                 Inverse::view)
          .Cases({"t", "transpose.int", "permute"}, Inverse::permute)
          .Case("slice.Tensor", Inverse::slice)
          .Cases({"select.int", "unbind.int"}, Inverse::select)
          .Cases({"split.Tensor", "split_with_sizes"}, Inverse::split)
          .Case("diagonal", Inverse::diagonal)
          .Case("as_strided", Inverse::strided)
          .Default(Inverse::unknown);

  Call scatter;
  auto addValue = [&](StringRef name, Value argument) {
    BoundArg &arg = scatter.args.emplace_back();
    arg.literal.name = name.str();
    arg.literal.kind = Kind::value;
    arg.values.push_back(argument);
  };
  auto emitScatter = [&](StringRef op) -> Value {
    scatter.op = op.str();
    scatter.resultTypes.push_back(type);
    addValue("self", parent);
    addValue("src", value);
    setInteger(scatter, "dim", wrapDim(call.integer("dim", 0), rank));
    SmallVector<Value> results;
    if (failed(emitCall(emitter, scatter, results)))
      return {};
    return results[0];
  };

  switch (inverse) {
  case Inverse::same:
    return value;
  case Inverse::view:
    return emitter.view(value, type.getShape());
  case Inverse::permute: {
    // All three are permutations; the inverse of t and transpose is itself.
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    if (call.op == "t" && rank == 2) {
      std::swap(dims[0], dims[1]);
    } else if (call.op == "transpose.int") {
      std::swap(dims[wrapDim(call.integer("dim0", 0), rank)], dims[wrapDim(call.integer("dim1", 0), rank)]);
    } else if (BoundArg *arg = call.find("dims")) {
      for (auto [to, from] : llvm::enumerate(arg->literal.integers))
        dims[wrapDim(from, rank)] = to;
    }
    return emitter.permute(value, dims);
  }
  case Inverse::slice:
    for (StringRef name : {"start", "end", "step"})
      if (BoundArg *arg = call.find(name); arg && arg->isNumber())
        setInteger(scatter, name, arg->literal.integer);
    return emitScatter("slice_scatter");
  case Inverse::select:
    setInteger(scatter, "index", call.op == "unbind.int" ? view.result : call.integer("index", 0));
    return emitScatter("select_scatter");
  case Inverse::split: {
    int64_t dim = wrapDim(call.integer("dim", 0), rank);
    int64_t start = 0;
    for (unsigned i = 0; i < view.result; ++i)
      start += maker.results[i]->spec.shape[dim];
    setInteger(scatter, "start", start);
    setInteger(scatter, "end", start + view.type.getDimSize(dim));
    setInteger(scatter, "step", 1);
    return emitScatter("slice_scatter");
  }
  case Inverse::diagonal:
    setInteger(scatter, "offset", call.integer("offset", 0));
    setInteger(scatter, "dim1", call.integer("dim1", 0));
    setInteger(scatter, "dim2", call.integer("dim2", 1));
    return emitScatter("diagonal_scatter");
  case Inverse::strided:
    for (StringRef name : {"size", "stride", "storage_offset"})
      if (BoundArg *arg = call.find(name))
        scatter.args.push_back(*arg);
    return emitScatter("as_strided_scatter");
  case Inverse::unknown:
    break;
  }
  emitter.error("writing through a view made by '" + maker.op + "' is not supported");
  return {};
}

LogicalResult Functionalizer::write(int64_t id, Value value) {
  Handle handle = handles.lookup(id);
  if (handle.parent < 0) {
    int64_t generation = ++generations[id];
    handles[id].value = value;
    handles[id].generation = generation;
    return success();
  }
  Value parent = read(handle.parent);
  Value written = parent ? writeThrough(handle, parent, value) : Value();
  if (!written || failed(write(handle.parent, written)))
    return failure();
  Handle &fresh = handles[id];
  fresh.value = value;
  fresh.generation = generations.lookup(handle.root);
  return success();
}

void Functionalizer::bindResult(const step::Node &node, unsigned index, Value value) {
  int64_t id = node.results[index]->id;
  Handle handle;
  handle.value = value;
  handle.type = typeOf(value);
  if (node.viewOf.empty()) {
    handle.root = id;
    generations[id] = 0;
  } else {
    handle.parent = node.findArg(node.viewOf)->integer;
    handle.root = handles.lookup(handle.parent).root;
    handle.generation = generations.lookup(handle.root);
    handle.maker = &node;
    handle.result = index;
  }
  handles[id] = handle;
}

/// The written tensors' new values are the functional op's results.
LogicalResult Functionalizer::emitWrites(const step::Node &node, Call &call) {
  SmallVector<int64_t> targets;
  for (const std::string &name : node.mutates) {
    const step::Arg &arg = *node.findArg(name);
    if (arg.kind == Kind::value)
      targets.push_back(arg.integer);
    else
      targets.append(arg.integers.begin(), arg.integers.end());
  }
  // An op that gives new tensors, and writes others: its results come first.
  size_t created = node.viewOf.empty() ? node.results.size() : 0;
  for (size_t i = 0; i < created; ++i)
    call.resultTypes.push_back(node.results[i] ? getTensorType(node.results[i]->spec, emitter.builder.getContext())
                                               : RankedTensorType());
  for (int64_t id : targets) {
    if (id < 0)
      return emitter.error("'" + node.op + "' writes an absent tensor");
    call.resultTypes.push_back(handles.lookup(id).type);
  }
  SmallVector<Value> results;
  if (failed(emitCall(emitter, call, results)))
    return failure();
  if (results.size() != created + targets.size())
    return emitter.error("'" + node.op + "' writes ")
           << targets.size() << " tensors and makes " << created << ", the op has " << results.size() << " results";
  for (auto [id, value] : llvm::zip_equal(targets, ArrayRef(results).drop_front(created)))
    if (failed(write(id, value)))
      return failure();
  for (auto [index, result] : llvm::enumerate(node.results))
    if (result)
      bindResult(node, index, created ? results[index] : read(node.findArg(node.viewOf)->integer));
  return success();
}

LogicalResult Functionalizer::emitNode(const step::Node &node) {
  Call call = bind(node);
  for (BoundArg &arg : call.args)
    for (auto [index, value] : llvm::enumerate(arg.values))
      if (!value && (arg.isValue() || arg.literal.integers[index] >= 0))
        return failure(); // reading it emitted an error
  if (!node.mutates.empty())
    return emitWrites(node, call);
  for (const std::optional<step::Result> &result : node.results)
    call.resultTypes.push_back(result ? getTensorType(result->spec, emitter.builder.getContext()) : RankedTensorType());
  SmallVector<Value> results;
  if (failed(emitCall(emitter, call, results)))
    return failure();
  for (auto [index, result] : llvm::enumerate(node.results))
    if (result)
      bindResult(node, index, results[index]);
  return success();
}
