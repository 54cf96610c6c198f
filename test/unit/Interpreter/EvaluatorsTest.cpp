//===- EvaluatorsTest.cpp - the table of evaluators is the dialect --------===//

#include "spmd/InitAll.h"
#include "spmd/Interpreter/Evaluator.h"

#include "dialects/Aten/AtenDialect.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace spmd::interp;

TEST(Evaluators, EveryAtenOpHasOneAndNoOtherExists) {
  DialectRegistry registry;
  spmd::registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  llvm::StringSet<> ops;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    ops.insert(name.getStringRef());
  for (const auto &op : ops)
    if (op.first().starts_with("aten."))
      EXPECT_TRUE(EvaluatorRegistry::get().lookup(op.first())) << op.first().str();
  for (const auto &evaluator : EvaluatorRegistry::get().all())
    EXPECT_TRUE(ops.contains(evaluator.first())) << evaluator.first().str();
}
