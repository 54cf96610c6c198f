//===- NormalizeProducts.cpp - Products as mm, bmm and arithmetic ---------===//

#include "Arithmetic.h"
#include "Normalize.h"

using namespace mlir;
using namespace spmd;
using Kind = step::Arg::Kind;

static int64_t sizeOf(Value value, int64_t dim) { return typeOf(value).getDimSize(dim); }

/// a b for matrices; of integers as sums of products, for which there are no GEMMs.
static Value product(Emitter &emitter, Type type, Value a, Value b) {
  Arithmetic arithmetic(emitter, type);
  if (isa<FloatType>(type))
    return arithmetic.product(a, b);
  int64_t m = sizeOf(a, 0), k = sizeOf(a, 1), n = sizeOf(b, 1);
  return arithmetic.sum(arithmetic.mul(emitter.view(a, {m, k, 1}), emitter.view(b, {1, k, n})), {1});
}

/// beta * self + alpha * value; with beta 0, self is not read.
static Value combine(Emitter &emitter, Call &call, Value value) {
  Arithmetic a(emitter, call.resultTypes[0].getElementType());
  double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  if (alpha != 1)
    value = a.mul(value, alpha);
  if (beta == 0)
    return value;
  Value self = call.value("self");
  return a.add(beta == 1 ? self : a.mul(self, beta), value);
}

static Value column(Emitter &emitter, Value vector) { return emitter.view(vector, {sizeOf(vector, 0), 1}); }
static Value row(Emitter &emitter, Value vector) { return emitter.view(vector, {1, sizeOf(vector, 0)}); }

static LogicalResult emitMv(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  Value matrix = call.value(call.op == "mv" ? "self" : "mat"), vector = call.value("vec");
  Value value = emitter.view(product(emitter, type.getElementType(), matrix, column(emitter, vector)), type.getShape());
  results.push_back(call.op == "mv" ? value : combine(emitter, call, value));
  return success();
}

static LogicalResult emitDot(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  Value a = call.value("self"), b = call.value(call.op == "dot" ? "tensor" : "other");
  results.push_back(
      emitter.view(product(emitter, type.getElementType(), row(emitter, a), column(emitter, b)), type.getShape()));
  return success();
}

/// Every product of an element of one vector with one of the other.
static LogicalResult emitOuter(Emitter &emitter, Call &call, Results &results) {
  Arithmetic a(emitter, call.resultTypes[0].getElementType());
  bool adds = call.op == "addr";
  Value left = call.value(adds ? "vec1" : "self"), right = call.value("vec2");
  Value value = a.mul(column(emitter, left), row(emitter, right));
  results.push_back(adds ? combine(emitter, call, value) : value);
  return success();
}

/// The sum over b of batch1[b] batch2[b] is one product over (b, k).
static LogicalResult emitAddbmm(Emitter &emitter, Call &call, Results &results) {
  Value left = call.value("batch1"), right = call.value("batch2");
  int64_t b = sizeOf(left, 0), m = sizeOf(left, 1), k = sizeOf(left, 2), n = sizeOf(right, 2);
  left = emitter.view(emitter.permute(left, {1, 0, 2}), {m, b * k});
  right = emitter.view(right, {b * k, n});
  results.push_back(combine(emitter, call, product(emitter, call.resultTypes[0].getElementType(), left, right)));
  return success();
}

/// linear that was not taken apart above: rows times the transposed weight, plus bias.
static LogicalResult emitLinear(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  Value input = call.value("input"), weight = emitter.permute(call.value("weight"), {1, 0});
  int64_t columns = typeOf(input).getShape().back();
  Value rows = emitter.view(input, {typeOf(input).getNumElements() / columns, columns});
  Value value = emitter.view(product(emitter, type.getElementType(), rows, weight), type.getShape());
  if (Value bias = call.value("bias"))
    value = Arithmetic(emitter, type.getElementType()).add(value, bias);
  results.push_back(value);
  return success();
}

/// mm, bmm, addmm and baddbmm: of integers, for which there are no GEMMs, as sums of products.
static LogicalResult emitProduct(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  if (isa<FloatType>(type.getElementType()))
    return emitSameOp(emitter, call, results);
  bool adds = StringRef(call.op).contains("add"), batched = type.getRank() == 3;
  Value a = call.value(!adds ? "self" : batched ? "batch1" : "mat1");
  Value b = call.value(!adds ? "mat2" : batched ? "batch2" : "mat2");
  if (!a || !b || typeOf(a).getRank() != type.getRank() || typeOf(b).getRank() != type.getRank())
    return emitter.error("'") << call.op << "' needs two matrices, or batches of them";
  SmallVector<int64_t> left(typeOf(a).getShape()), right(typeOf(b).getShape());
  left.push_back(1);
  right.insert(right.end() - 2, 1);
  Arithmetic arithmetic(emitter, type.getElementType());
  Value products = arithmetic.mul(emitter.view(a, left), emitter.view(b, right));
  Value sum = arithmetic.sum(products, {type.getRank() - 1});
  results.push_back(adds ? combine(emitter, call, sum) : sum);
  return success();
}

static LogicalResult refuse(Emitter &emitter, Call &call, Results &) {
  InFlightDiagnostic error = emitter.error("'");
  error << call.op << "' is not supported: it has no kernels, because it is not a matrix product; write it with matmul, or "
        << "compute it outside of the step";
  if (call.op == "_linalg_svd")
    error << "; as a penalty, the nuclear norm of a product of two matrices is at most half the sum of their squares";
  return error;
}

void spmd::normalizeProducts(NormalizerTable &table) {
  for (StringRef op : {"mm", "bmm", "addmm", "baddbmm"})
    table[op] = {&emitProduct, {"self"}};
  table["mv"] = {&emitMv, {"self", "vec"}};
  table["addmv"] = {&emitMv, {"self", "mat", "vec"}};
  table["dot"] = {&emitDot, {"self", "tensor"}};
  table["vdot"] = {&emitDot, {"self", "other"}};
  table["ger"] = {&emitOuter, {"self", "vec2"}};
  table["addr"] = {&emitOuter, {"self", "vec1", "vec2"}};
  table["addbmm"] = {&emitAddbmm, {"self", "batch1", "batch2"}};
  table["linear"] = {&emitLinear, {"input", "weight"}};
  for (StringRef op :
       {"_pdist_forward", "_pdist_backward", "linalg_inv_ex", "_linalg_det", "_linalg_slogdet", "_linalg_svd",
        "_linalg_eigh", "linalg_eig", "linalg_qr", "linalg_cholesky_ex", "linalg_lu_factor_ex", "_linalg_solve_ex",
        "linalg_solve_triangular", "linalg_lstsq", "linalg_matrix_exp", "linalg_pinv.atol_rtol_tensor",
        "linalg_householder_product", "cholesky_inverse", "cholesky_solve"})
    table[op] = &refuse;
}
