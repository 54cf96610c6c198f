//===- IterationSpace.h - where values lie in a cluster ---------*- C++ -*-===//
//
// See [Note: iteration spaces] in Clusters.h.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_ITERATIONSPACE_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_ITERATIONSPACE_H

#include "Graph.h"

namespace spmd::fusion {

/// A range of index distances [inner, outer) in a space: the digit of one dim.
struct Digit {
  int64_t inner = 1, outer = 1;
  bool isEmpty() const { return inner == outer; }
  bool operator==(const Digit &other) const { return inner == other.inner && outer == other.outer; }
};

/// Sorts `borders`, adds those of the reduced digits, and says whether the space can be cut at all of them without
/// cutting a reduced digit.
bool canCut(int64_t count, llvm::SmallVector<int64_t> &borders, Digit row, Digit column);
/// The dims of a space cut at sorted borders, outermost first.
llvm::SmallVector<int64_t> cutSpace(int64_t count, llvm::ArrayRef<int64_t> borders);

/// How a node whose index space lies at `position` reads `ref`; nothing when the space cannot say it.
std::optional<Layout> getReadLayout(const Ref &ref, const Layout &position);

/// Whether a reduction runs in a space made for it: sums of columns with few blocks, which run over blocks of columns
/// in parallel instead.
bool hasOwnSpace(const Node *node);
/// Where the index space of a node that is first in its cluster lies: of its value, for a reduction of its input.
Layout getFirstPosition(const Node *node);
/// The digit of the space that a reduction runs along, given where its input lies.
std::optional<Digit> getReducedDigit(const Node *reduce, const Layout &inputPosition);
/// Where the value of a reduction lies, given where its input lies.
Layout getReducePosition(const Node *reduce, const Layout &inputPosition);

/// Whether a cluster over a chunk of a flat buffer can read `node` through `layout`: element by element, or a single
/// element.
bool isChunkRead(const Node &node, const Layout &layout);

/// Whether a cluster of `node` alone, reading the input through `ref`, has a space; if not, the input is copied first.
bool isReadableAlone(const Node *node, llvm::ArrayRef<Ref> refs);

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_ITERATIONSPACE_H
