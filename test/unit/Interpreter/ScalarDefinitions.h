//===- ScalarDefinitions.h - pointwise ops in C++ ---------------*- C++ -*-===//
//
// What one element of the common pointwise ops is, written once more and by
// hand, as PyTorch's kernels have it: what their scalar bodies are compared with.
//===----------------------------------------------------------------------===//
#ifndef SPMD_TEST_UNIT_INTERPRETER_SCALARDEFINITIONS_H
#define SPMD_TEST_UNIT_INTERPRETER_SCALARDEFINITIONS_H

#include <cstdint>
#include <vector>

/// A definition reads its operands and then its Scalars, in the order of `scalars`.
using RealDefinition = double (*)(const double *);
using IntegerDefinition = int64_t (*)(const int64_t *);

struct ScalarDefinition {
  const char *op;
  /// A letter for each operand: one of the types that are tried, or a mask of i1.
  const char *operands;
  /// Of the types that are tried: floats, integers, booleans.
  const char *types;
  /// What it is in floats; and in integers, which wrap to the result's width, if it is anything in those.
  RealDefinition reals;
  IntegerDefinition integers;
  /// Scalars that the definitions read, and the attributes that are tried.
  std::vector<const char *> scalars = {};
  std::vector<const char *> attributes = {"{}"};
  /// By how many units in the last place of f64 the body may differ: 0 means to the bit.
  uint64_t ulps = 0;
};

const std::vector<ScalarDefinition> &getScalarDefinitions();

#endif // SPMD_TEST_UNIT_INTERPRETER_SCALARDEFINITIONS_H
