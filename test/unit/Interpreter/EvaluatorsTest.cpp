//===- EvaluatorsTest.cpp - the table of evaluators is the dialect --------===//

#include "spmd/InitAll.h"
#include "spmd/Interpreter/Evaluator.h"

#include "dialects/Aten/AtenDialect.h"
#include "dialects/Aten/AtenInterfaces.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace spmd::interp;

TEST(Evaluators, EveryAtenOpHasOneOrAScalarBodyAndNoOtherExists) {
  DialectRegistry registry;
  spmd::registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  llvm::StringSet<> ops;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    ops.insert(name.getStringRef());
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("aten")) {
    // An op is asked, not its name: an empty one of its kind answers.
    OperationState state(UnknownLoc::get(&context), name.getStringRef());
    Operation *op = Operation::create(state);
    EXPECT_TRUE(findEvaluator(op)) << name.getStringRef().str();
    // What has a scalar body is defined by nothing else.
    if (cast<spmd::aten::AtenOpInterface>(op).hasScalarBody())
      EXPECT_FALSE(EvaluatorRegistry::get().lookup(name.getStringRef())) << name.getStringRef().str();
    op->destroy();
  }
  for (const auto &evaluator : EvaluatorRegistry::get().all())
    EXPECT_TRUE(ops.contains(evaluator.first())) << evaluator.first().str();
}
