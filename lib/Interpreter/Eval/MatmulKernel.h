//===- MatmulKernel.h - blocked double matrix product -----------*- C++ -*-===//
#ifndef SPMD_LIB_INTERPRETER_EVAL_MATMULKERNEL_H
#define SPMD_LIB_INTERPRETER_EVAL_MATMULKERNEL_H

#include <cstdint>

namespace spmd::interp {

/// c[m,n] += a[m,k] b[k,n], all row-major and dense. Every element of c is the
/// sum over k in increasing order, whatever m and n are, so a rank that computes
/// some rows gets the same bits as one that computes all.
void multiplyAdd(const double *a, const double *b, double *c, int64_t m, int64_t n, int64_t k);

} // namespace spmd::interp

#endif // SPMD_LIB_INTERPRETER_EVAL_MATMULKERNEL_H
