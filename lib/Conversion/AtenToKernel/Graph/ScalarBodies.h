//===- ScalarBodies.h - what one element of a pointwise op is ---*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_SCALARBODIES_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_SCALARBODIES_H

#include "Graph.h"
#include "dialects/Aten/ScalarBuilder.h"

namespace spmd::fusion {

using aten::castScalar;
using aten::getComputeType;
using aten::getScalarValue;
using aten::getValueType;
using aten::ScalarBuilder;

/// The scalar body of a pointwise aten op (ScalarBodyOpInterface::buildScalarBody): one argument per tensor operand, of
/// the operand's element type, one result of the result's. Null when the op has none.
ScalarBody getScalarBody(mlir::Operation *op);

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_SCALARBODIES_H
