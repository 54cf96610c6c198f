//===- KernelInterfaceTest.cpp - KernelOpInterface ------------------------===//

#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace spmd::kernel;

namespace {

/// One kernel op, parsed as the body of a function with arguments `arguments`.
class KernelInterfaceTest : public ::testing::Test {
protected:
  KernelOpInterface parse(const std::string &arguments, const std::string &op) {
    context.loadDialect<KernelDialect, arith::ArithDialect, func::FuncDialect, math::MathDialect>();
    std::string source = "func.func @f(" + arguments + ") {\n" + op + "\nreturn\n}";
    module = parseSourceString<ModuleOp>(source, &context);
    EXPECT_TRUE(module);
    KernelOpInterface found;
    module->walk([&](KernelOpInterface kernel) { found = kernel; });
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(KernelInterfaceTest, ElementwiseClusterWorksInPlace) {
  auto op = parse("%x: tensor<4x8xf32>, %b: tensor<8xf32>", R"(
    %0 = kernel.cluster dims [4, 8] parallel 2
        ins(%a = %x at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>, %c = %b at (d0, d1) -> (d1) : tensor<8xf32>)
        outs(at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>) {
      %s = arith.addf %a, %c : f32
      kernel.yield %s : f32
    })");
  EXPECT_TRUE(op.canAlias(0, 0));
  EXPECT_FALSE(op.canAlias(1, 0));
  EXPECT_EQ(op.getParallelIterations(), 32);
  EXPECT_EQ(op.getFlops(), 32);
  EXPECT_EQ(op.getBytesMoved(), 4 * (32 + 8 + 32));
  EXPECT_EQ(op.getGrain(), 32);
  EXPECT_TRUE(op.isGenerated());
}

TEST_F(KernelInterfaceTest, CountsTheBytesThatItReaches) {
  // 131 columns of 70,001, and the same tensor once more, in part the same columns.
  auto columns = parse("%x: tensor<5x70001xf32>", R"(
    %0 = kernel.cluster dims [5, 131] parallel 1
        ins(%a = %x at (d0, d1) -> (d0 * 70001 + d1) : tensor<5x70001xf32>,
            %b = %x at (d0, d1) -> (d0 * 70001 + d1 + 1) : tensor<5x70001xf32>)
        outs(at (d0, d1) -> (d0 * 131 + d1) : tensor<5x131xf32>) {
      %s = arith.addf %a, %b : f32
      kernel.yield %s : f32
    })");
  EXPECT_EQ(columns.getBytesMoved(), 4 * 3 * 5 * 131);
  // All of a tensor twice is all of it; a window meets elements several times, and a guarded one ends with the tensor.
  auto twice = parse("%x: tensor<8x8xf32>, %y: tensor<10xbf16>, %z: tensor<4xf64>", R"(
    %0 = kernel.cluster dims [8, 8, 3] parallel 2
        ins(%a = %x at (d0, d1, d2) -> (d0 * 8 + d1) : tensor<8x8xf32>,
            %b = %x at (d0, d1, d2) -> (d1 * 8 + d0) : tensor<8x8xf32>,
            %c = %y at (d0, d1, d2) -> (d1 + d2) : tensor<10xbf16>,
            %d = %z at (d0, d1, d2) -> (d1 - 2) guarded : tensor<4xf64>)
        outs(at (d0, d1, d2) -> (d0 * 8 + d1) : tensor<8x8xf32>) {
      %e = arith.addf %a, %b : f32
      %f = arith.extf %c : bf16 to f32
      %g = arith.truncf %d : f64 to f32
      %h = arith.addf %f, %g : f32
      %i = arith.addf %e, %h : f32
      %r = kernel.reduce <add> %i over [2] : f32
      kernel.yield %r : f32
    })");
  EXPECT_EQ(twice.getBytesMoved(), 4 * 64 + 2 * 10 + 8 * 4 + 4 * 64);
}

TEST_F(KernelInterfaceTest, TransposedOrOtherWidthIsNotInPlace) {
  auto op = parse("%x: tensor<8x4xf32>, %y: tensor<4x8xf64>", R"(
    %0 = kernel.cluster dims [4, 8] parallel 1
        ins(%a = %x at (d0, d1) -> (d1 * 4 + d0) : tensor<8x4xf32>,
            %b = %y at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf64>)
        outs(at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>) {
      %c = arith.truncf %b : f64 to f32
      %s = arith.addf %a, %c : f32
      kernel.yield %s : f32
    })");
  EXPECT_FALSE(op.canAlias(0, 0));
  EXPECT_FALSE(op.canAlias(1, 0));
}

TEST_F(KernelInterfaceTest, TheSameValueReadElsewhereIsNotInPlace) {
  auto op = parse("%x: tensor<8xf32>", R"(
    %0 = kernel.cluster dims [8] parallel 1
        ins(%a = %x at (d0) -> (d0) : tensor<8xf32>, %b = %x at (d0) -> (-d0 + 7) : tensor<8xf32>)
        outs(at (d0) -> (d0) : tensor<8xf32>) {
      %s = arith.addf %a, %b : f32
      kernel.yield %s : f32
    })");
  EXPECT_FALSE(op.canAlias(0, 0));
  EXPECT_FALSE(op.canAlias(1, 0));
}

TEST_F(KernelInterfaceTest, GuardedIsNotInPlace) {
  auto op = parse("%x: tensor<8xf32>", R"(
    %0 = kernel.cluster dims [8] parallel 1 ins(%a = %x at (d0) -> (d0) guarded : tensor<8xf32>)
        outs(at (d0) -> (d0) : tensor<8xf32>) {
      kernel.yield %a : f32
    })");
  EXPECT_FALSE(op.canAlias(0, 0));
}

/// The sum x + y is written in the first pass, then x is read again for the last: only the last result may replace it.
TEST_F(KernelInterfaceTest, LaterPassesForbidEarlyResults) {
  auto op = parse("%x: tensor<4x8xf32>, %y: tensor<4x8xf32>", R"(
    %0:3 = kernel.cluster dims [4, 8] parallel 1
        ins(%a = %x at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>,
            %b = %y at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>)
        outs(at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>, at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>,
             at (d0, d1) -> (d0) : tensor<4xf32>) {
      %s = arith.addf %a, %b : f32
      %t = kernel.reduce <add> %s over [1] : f32
      %r = arith.divf %a, %t : f32
      kernel.yield %s, %r, %t : f32, f32, f32
    })");
  EXPECT_FALSE(op.canAlias(0, 0));
  EXPECT_TRUE(op.canAlias(0, 1));
  EXPECT_TRUE(op.canAlias(1, 0));
  EXPECT_TRUE(op.canAlias(1, 1));
  EXPECT_EQ(op.getParallelIterations(), 4);
}

TEST_F(KernelInterfaceTest, SegmentedWorksInPlaceOnElementsOnly) {
  auto op = parse("%p: tensor<4xf32>, %t: tensor<4xf32>", R"(
    %0 = kernel.segmented chunk 4 position () -> (0) segments [0, 1, 2, 3] to [1, 2, 3, 4]
        elements(%a = %p : tensor<4xf32>) tables(%b = %t : tensor<4xf32>) outs(tensor<4xf32>) {
      %s = arith.addf %a, %b : f32
      kernel.yield %s : f32
    })");
  EXPECT_TRUE(op.canAlias(0, 0));
  EXPECT_FALSE(op.canAlias(1, 0));
  EXPECT_EQ(op.getParallelIterations(), 4);
}

TEST_F(KernelInterfaceTest, SegmentNormsAreOneIterationPerPiece) {
  auto op = parse("%p: tensor<8xf32>", R"(
    %0 = kernel.segmented chunk 8 position () -> (0) segments [0, 4] to [4, 8] pieces 4
        elements(%a = %p : tensor<8xf32>) outs(tensor<2x4xf32>) {
      %s = kernel.reduce <add> %a over [0] : f32
      kernel.yield %s : f32
    })");
  EXPECT_FALSE(op.canAlias(0, 0));
  EXPECT_EQ(op.getParallelIterations(), 8);
}

TEST_F(KernelInterfaceTest, GemmAccumulatesInPlace) {
  auto op = parse("%a: tensor<4x4xf32>, %c: tensor<4x4xf32>", R"(
    %0 = kernel.gemm m 4 n 4 k 4 a(%a ld 4 : tensor<4x4xf32>) b(%a ld 4 : tensor<4x4xf32>)
        residual(%c : tensor<4x4xf32>) -> tensor<4x4xf32>)");
  EXPECT_TRUE(op.canAlias(2, 0));
  EXPECT_FALSE(op.canAlias(0, 0));
  EXPECT_EQ(op.getFlops(), 128);
  EXPECT_FALSE(op.isGenerated());
  EXPECT_FALSE(op.getSymbolAttr());
}

TEST_F(KernelInterfaceTest, ScatterAddsInPlace) {
  auto op = parse("%g: tensor<3x4xf32>, %i: tensor<3xi64>, %s: tensor<100x4xf32>", R"(
    %0 = kernel.scatter_rows <add> %g, %i into %s rows 100
        : (tensor<3x4xf32>, tensor<3xi64>, tensor<100x4xf32>) -> tensor<100x4xf32>)");
  EXPECT_TRUE(op.canAlias(2, 0));
  EXPECT_FALSE(op.canAlias(0, 0));
  EXPECT_EQ(op.getParallelIterations(), 64);
}

} // namespace
