//===- ScalarFunction.cpp - light values inside a heavy op ----------------===//

#include "ScalarFunction.h"

#include "../Graph/IterationSpace.h"
#include "BodyBuilder.h"
#include "dialects/Kernel/ArgumentType.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace spmd::fusion {

std::shared_ptr<const ScalarFunction> ScalarFunction::get(const Ref &value, ArrayRef<int64_t> dims) {
  std::shared_ptr<ScalarFunction> function(new ScalarFunction(dims));
  // The value itself, read by the identity.
  Node root(NodeKind::Pointwise, 0, value.node->loc);
  root.shape.assign(dims.begin(), dims.end());
  root.elementType = value.getElementType();
  root.inputs = {value};
  root.body = [](ImplicitLocOpBuilder &, ValueRange args) { return args[0]; };
  function->result = function->copy(&root, Layout::contiguous(numElements(dims)));
  return function->result ? function : nullptr;
}

/// Whether the space can read `ref` from `position`: with one stride per dim.
bool ScalarFunction::canRead(const Ref &ref, const Layout &position) const {
  std::optional<Layout> layout = getReadLayout(ref, position);
  return layout && !ref.guarded && !ref.node->unit && ref.node->kind != NodeKind::SegmentBroadcast &&
         layout->getStrides(dims);
}

/// A copy of a node that takes no memory: nodes that only functions read do not stay in the graph.
Node *ScalarFunction::copyVirtual(Node *node) {
  SmallVector<Node *, 1> &known = copiesOf[node];
  if (known.empty()) {
    copies.push_back(std::make_unique<Node>(*node));
    known.push_back(copies.back().get());
  }
  return known.front();
}

/// A copy of `node`, whose value lies at `position` of the space, with all it can be made of; null if some input cannot
/// be read.
Node *ScalarFunction::copy(Node *node, const Layout &position) {
  for (Node *known : copiesOf.lookup(node))
    if (cluster.positions.find(known)->second == position)
      return known;
  if (!llvm::all_of(node->inputs, [&](const Ref &input) { return canRead(input, position); }))
    return nullptr;
  auto made = std::make_unique<Node>(*node);
  for (Ref &input : made->inputs) {
    Layout layout = *getReadLayout(input, position);
    if (input.node->kind == NodeKind::Pointwise)
      if (Node *inner = copy(input.node, layout)) {
        input.node = inner;
        continue;
      }
    if (input.node->isVirtual()) {
      input.node = copyVirtual(input.node);
      continue;
    }
    Read read{input.node, layout, false};
    if (!llvm::is_contained(cluster.reads, read))
      cluster.reads.push_back(read);
  }
  Node *raw = made.get();
  cluster.members.push_back(raw);
  cluster.positions.try_emplace(raw, position);
  copiesOf[node].push_back(raw);
  copies.push_back(std::move(made));
  return raw;
}

SmallVector<Ref> ScalarFunction::getInputs() const {
  return llvm::map_to_vector(cluster.reads, [](const Read &read) {
    return Ref{read.node, Layout::contiguous(read.node->getNumElements()), read.node->shape, false};
  });
}

SmallVector<AffineMap> ScalarFunction::getMaps(MLIRContext *context) const {
  return llvm::map_to_vector(cluster.reads,
                             [&](const Read &read) { return getAccessMap(context, read.layout, dims); });
}

void ScalarFunction::emit(Region &region, Location loc) const {
  Block &block = region.emplaceBlock();
  BodyBuilder body(ImplicitLocOpBuilder::atBlockEnd(loc, &block), cluster, dims);
  for (const Read &read : cluster.reads)
    body.bind(read, block.addArgument(kernel::getArgumentType(read.node->elementType), loc));
  body.computeMembers();
  OpBuilder end = OpBuilder::atBlockEnd(&block);
  kernel::YieldOp::create(end, loc, body.get(result));
}

} // namespace spmd::fusion
