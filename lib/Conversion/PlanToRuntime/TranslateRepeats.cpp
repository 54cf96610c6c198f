//===- TranslateRepeats.cpp -----------------------------------------------===//

#include "TranslateRepeats.h"
#include "dialects/Spmd/Iterations.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"

using namespace mlir;
using namespace spmd;

LogicalResult spmd::checkIterations(plan::ProgramOp program) {
  auto module = program->getParentOfType<ModuleOp>();
  std::optional<FewIterations> iterations = module ? FewIterations::of(module) : std::nullopt;
  if (!iterations || iterations->missing() <= 0)
    return success();
  if (program.getIterationAttr() && llvm::all_of(module.getOps<plan::DataflowOp>(), [](plan::DataflowOp dataflow) {
        return static_cast<bool>(dataflow.getIterationAttr());
      }))
    return success();
  return program.emitOpError(
      "has only a few iterations of a loop; run spmd-mark-iteration to mark the one that stands for the others");
}

FailureOr<std::optional<runtime::Repeats>> spmd::translateRepeats(Operation *op, DenseI64ArrayAttr iteration,
                                                                  const llvm::StringMap<int32_t> &inputs) {
  if (!iteration)
    return std::optional<runtime::Repeats>();
  std::optional<FewIterations> iterations = FewIterations::of(op->getParentOfType<ModuleOp>());
  if (!iterations)
    return op->emitOpError("has an iteration, but 'spmd.iterations' lacks the entry for the omitted iterations");
  runtime::Repeats repeats{iteration[0], iteration[1], iterations->missing(), {}};
  for (auto names : iterations->fed.getAsRange<ArrayAttr>()) {
    std::vector<int32_t> numbers;
    for (auto name : names.getAsRange<StringAttr>()) {
      auto input = inputs.find(name.getValue());
      if (input == inputs.end())
        return op->emitOpError("has no batch input '") << name.getValue() << "', which iterations are fed";
      numbers.push_back(input->second);
    }
    repeats.fed.push_back(std::move(numbers));
  }
  return std::optional(std::move(repeats));
}
