//===- RowNumbersTest.cpp - which operands hold numbers of rows -----------===//

#include "dialects/Aten/AtenDialect.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace spmd::aten;

/// "operand: bound" for each that holds numbers, and what is ignored.
static std::string describe(llvm::StringRef op, llvm::StringRef types) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<AtenDialect, func::FuncDialect>();
  auto function = cast<FunctionType>(parseType(types, &context));
  std::string text = "func.func @g(", names;
  for (auto [i, type] : llvm::enumerate(function.getInputs())) {
    std::string name = (i ? ", %" : "%") + std::string(1, static_cast<char>('a' + i)), spelled;
    llvm::raw_string_ostream(spelled) << type;
    names += name;
    text += name + ": " + spelled;
  }
  size_t attributes = op.find(' ');
  text += ") {\n";
  text += function.getNumResults() > 1 ? "%0:2 = " : "%0 = ";
  text += op.take_front(attributes).str() + " " + names + op.drop_front(std::min(attributes, op.size())).str() + " : " +
          types.str() + "\nreturn }";
  auto module = parseSourceString<ModuleOp>(text, &context);
  std::string described;
  if (module)
    module->walk([&](AtenOpInterface found) {
      for (OpOperand &operand : found->getOpOperands())
        if (std::optional<RowNumbers> numbers = found.getRowNumbers(operand)) {
          described += std::to_string(operand.getOperandNumber()) + ": " + std::to_string(numbers->bound);
          if (numbers->ignored)
            described += " or " + std::to_string(*numbers->ignored);
        }
    });
  return described;
}

TEST(RowNumbers, AreThoseThatTheOpLooksUp) {
  EXPECT_EQ(describe("aten.embedding", "(tensor<10x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>"), "1: 10");
  EXPECT_EQ(describe("aten.embedding_dense_backward {num_weights = 9 : i64, padding_idx = -1 : i64}",
                     "(tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<9x8xf32>"),
            "1: 9");
  EXPECT_EQ(
      describe("aten.gather_rows {batch_dims = 1 : i64}", "(tensor<2x5x3xf32>, tensor<2x4xi64>) -> tensor<2x4x3xf32>"),
      "1: 5");
  EXPECT_EQ(describe("aten.scatter_rows {reduce = \"amax\", rows = 5 : i64}",
                     "(tensor<5x3xf32>, tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>"),
            "1: 5");
  EXPECT_EQ(describe("aten.scatter_rows {reduce = \"sum\", rows = 5 : i64}",
                     "(tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>"),
            "0: 5");
  EXPECT_EQ(describe("aten.nll_loss_forward {ignore_index = -100 : i64, reduction = 1 : i64}",
                     "(tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)"),
            "1: 6 or -100");
  EXPECT_EQ(describe("aten.nll_loss_backward {ignore_index = 2 : i64, reduction = 1 : i64}",
                     "(tensor<f32>, tensor<4x6xf32>, tensor<4xi64>, tensor<f32>) -> tensor<4x6xf32>"),
            "2: 6 or 2");
  EXPECT_EQ(
      describe("aten.check_index {high = 7 : i64, low = 0 : i64, use = \"rows\"}", "(tensor<4xi64>) -> tensor<4xi64>"),
      "0: 7");
  EXPECT_EQ(describe("aten.mm", "(tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>"), "");
}
