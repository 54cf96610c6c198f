//===- AttentionMaskTest.cpp - windows of masks ---------------------------===//

#include "dialects/Kernel/AttentionMask.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace spmd::kernel;

namespace {

/// The window of a mask with the positions %t (query) and %s (key) as i64, %p from a table over keys.
class AttentionMaskTest : public ::testing::Test {
protected:
  KeyWindow window(const std::string &body) {
    context.loadDialect<KernelDialect, arith::ArithDialect, func::FuncDialect, math::MathDialect>();
    std::string source = R"(func.func @f(%x: tensor<1x1x8x4xf32>, %padding: tensor<8xi1>) {
      %0, %1 = kernel.attention
        <batch = 1, heads = 1, kvHeads = 1, qLen = 8, kvLen = 8, headDim = 4, vDim = 4> scale 1.0
        q(%x at <offset = 0, batch = 0, head = 0, row = 4> : tensor<1x1x8x4xf32>)
        k(%x at <offset = 0, batch = 0, head = 0, row = 4> : tensor<1x1x8x4xf32>)
        v(%x at <offset = 0, batch = 0, head = 0, row = 4> : tensor<1x1x8x4xf32>)
        mask(%p = %padding at (d0, d1, d2, d3) -> (d3) : tensor<8xi1>) {
      %ti = kernel.index 2
      %si = kernel.index 3
      %t = arith.index_cast %ti : index to i64
      %s = arith.index_cast %si : index to i64
      %c0 = arith.constant 0 : i64
      %c3 = arith.constant 3 : i64
      %true = arith.constant true
      %zero = arith.constant 0.0 : f32
      %never = arith.constant 0xFF800000 : f32
      )" + body + R"(
    } out(<offset = 0, batch = 0, head = 0, row = 4> : tensor<1x1x8x4xf32>) lse(tensor<8xf32>)
      return })";
    module = parseSourceString<ModuleOp>(source, &context);
    EXPECT_TRUE(module);
    KeyWindow found;
    if (module)
      module->walk([&](AttentionOp op) {
        found = getKeyWindow(op.getMask(), op.getSizes());
        pairs = countPairs(found, op.getSizes());
      });
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  int64_t pairs = 0;
};

TEST_F(AttentionMaskTest, CausalIsExact) {
  EXPECT_EQ(window("%m = arith.cmpi sle, %s, %t : i64\n kernel.yield %m : i1"), (KeyWindow{std::nullopt, 0, true}));
  EXPECT_EQ(pairs, 36);
  EXPECT_EQ(window("%m = arith.cmpi sge, %t, %s : i64\n kernel.yield %m : i1"), (KeyWindow{std::nullopt, 0, true}));
  EXPECT_EQ(window("%d = arith.subi %s, %t : i64\n %m = arith.cmpi slt, %d, %c0 : i64\n kernel.yield %m : i1"),
            (KeyWindow{std::nullopt, -1, true}));
}

TEST_F(AttentionMaskTest, WindowsIntersectAndUnite) {
  std::string sliding = R"(
      %first = arith.subi %t, %c3 : i64
      %a = arith.cmpi sgt, %s, %first : i64
      %b = arith.cmpi sle, %s, %t : i64
      %m = arith.andi %a, %b : i1
      )";
  EXPECT_EQ(window(sliding + "%n = arith.andi %m, %true : i1\n kernel.yield %n : i1"), (KeyWindow{-2, 0, true}));
  EXPECT_EQ(pairs, 1 + 2 + 6 * 3);
  std::string two = sliding + "%c = arith.cmpi eq, %s, %t : i64\n";
  EXPECT_EQ(window(two + "%n = arith.ori %m, %c : i1\n kernel.yield %n : i1"), (KeyWindow{-2, 0, false}));
  EXPECT_EQ(window(two + "%n = arith.xori %m, %true : i1\n kernel.yield %n : i1"),
            (KeyWindow{std::nullopt, std::nullopt, false}));
}

TEST_F(AttentionMaskTest, PaddingIsNotInTheWindow) {
  EXPECT_EQ(window("%c = arith.cmpi sle, %s, %t : i64\n %m = arith.andi %c, %p : i1\n kernel.yield %m : i1"),
            (KeyWindow{std::nullopt, 0, false}));
  EXPECT_EQ(window("kernel.yield %p : i1"), (KeyWindow{std::nullopt, std::nullopt, false}));
}

TEST_F(AttentionMaskTest, WhatIsAlwaysTrueIsNoMask) {
  EXPECT_EQ(window("%m = arith.cmpi sge, %t, %c0 : i64\n kernel.yield %m : i1"), KeyWindow());
  EXPECT_EQ(window("kernel.yield %true : i1"), KeyWindow());
}

TEST_F(AttentionMaskTest, MinusInfinityOutsideIsAWindow) {
  std::string causal = "%c = arith.cmpi sle, %s, %t : i64\n";
  EXPECT_EQ(window(causal + "%m = arith.select %c, %zero, %never : f32\n kernel.yield %m : f32"),
            (KeyWindow{std::nullopt, 0, true}));
  EXPECT_EQ(window(causal + "%m = arith.select %c, %never, %zero : f32\n kernel.yield %m : f32"),
            (KeyWindow{1, std::nullopt, true}));
  // What is added is no window, and a large number is not -inf.
  EXPECT_EQ(window(causal + "%bias = arith.sitofp %s : i64 to f32\n %m = arith.select %c, %bias, %never : f32\n"
                            "kernel.yield %m : f32"),
            (KeyWindow{std::nullopt, 0, false}));
  EXPECT_EQ(window(causal + "%large = arith.constant -3.0e38 : f32\n %m = arith.select %c, %zero, %large : f32\n"
                            "kernel.yield %m : f32"),
            (KeyWindow{std::nullopt, std::nullopt, false}));
}

} // namespace
