//===- PlanIterations.cpp -------------------------------------------------===//

#include "PlanIterations.h"
#include "IterationFinder.h"
#include "dialects/Spmd/Iterations.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace spmd;

namespace {
/// The batch inputs that the loop of a module is fed, by name: list and number.
struct FedInputs {
  explicit FedInputs(const FewIterations &iterations) {
    for (auto [list, names] : llvm::enumerate(iterations.fed.getAsRange<ArrayAttr>()))
      for (auto [number, name] : llvm::enumerate(names.getAsRange<StringAttr>()))
        places[name.getValue()] = {static_cast<unsigned>(list), static_cast<int64_t>(number)};
  }

  /// Adds what has the role as a value that is there from the start.
  void add(IterationFinder &finder, IterationFinder::Value value, Attribute role) const {
    auto batch = dyn_cast<BatchAttr>(role);
    auto found = batch ? places.find(batch.getName()) : places.end();
    if (found == places.end())
      finder.addOutside(value);
    else
      finder.addFed(value, found->second.first, found->second.second);
  }

  llvm::StringMap<std::pair<unsigned, int64_t>> places;
};
} // namespace

static std::optional<FewIterations> getIterations(Operation *op, std::string &why) {
  std::optional<FewIterations> iterations = FewIterations::of(op->getParentOfType<ModuleOp>());
  if (!iterations || iterations->missing() < 1) {
    why = "'spmd.iterations' lacks the entry for the omitted iterations";
    return std::nullopt;
  }
  return iterations;
}

std::optional<FoundIteration> spmd::findIteration(plan::ProgramOp program, std::string &why) {
  std::optional<FewIterations> iterations = getIterations(program, why);
  if (!iterations)
    return std::nullopt;
  IterationFinder finder;
  FedInputs fed(*iterations);
  SmallVector<plan::BufferOp> buffers(program.getOps<plan::BufferOp>());
  llvm::StringMap<IterationFinder::Value> numbers;
  for (auto [number, buffer] : llvm::enumerate(buffers)) {
    numbers[buffer.getSymName()] = number;
    if (buffer.getState())
      finder.addOutside(number);
  }
  auto numberOf = [&](plan::RefAttr ref) { return numbers.lookup(ref.getBuffer().getValue()); };
  for (auto input : program.getOps<plan::InputOp>())
    fed.add(finder, numberOf(input.getRef()), input.getRole());
  for (auto output : program.getOps<plan::OutputOp>())
    finder.addOutside(numberOf(output.getRef()));

  AttrTypeReplacer withoutBuffers;
  withoutBuffers.addReplacement([](plan::RefAttr ref) {
    auto any = FlatSymbolRefAttr::get(ref.getContext(), "");
    return std::pair(
        plan::RefAttr::get(ref.getContext(), any, ref.getOffset(), ref.getCoord(), ref.getBytes(), ref.getAccess()),
        WalkResult::skip());
  });
  DenseMap<Value, IterationFinder::Value> events;
  for (auto command : program.getOps<plan::CommandOpInterface>()) {
    SmallVector<IterationFinder::Value> touched = llvm::map_to_vector(command.getRefs(), numberOf);
    if (Value awaited = command.getAwaitedEvent())
      touched.push_back(events.at(awaited));
    touched.push_back(events[command.getEvent()] = buffers.size() + events.size());
    finder.addItem(withoutBuffers.replace(describeItem(command)), touched);
  }
  IterationFinder::Later later;
  std::optional<IterationFinder::Range> range = finder.findIteration(iterations->missing(), later, why);
  if (!range)
    return std::nullopt;
  FoundIteration found{range->lastIteration(), range->end, {}};
  for (auto [number, buffer] : llvm::enumerate(buffers))
    if (auto next = later.find(number); next != later.end())
      found.later[buffer] = buffers[next->second];
  return found;
}

std::optional<FoundIteration> spmd::findIteration(plan::DataflowOp dataflow, std::string &why) {
  std::optional<FewIterations> iterations = getIterations(dataflow, why);
  if (!iterations)
    return std::nullopt;
  IterationFinder finder;
  FedInputs fed(*iterations);
  DenseMap<Value, IterationFinder::Value> numbers;
  for (Operation &op : dataflow.getOps()) {
    for (Value result : op.getResults())
      numbers[result] = numbers.size();
    if (auto source = dyn_cast<plan::SourceOp>(op))
      fed.add(finder, numbers.at(source->getResult(0)), source.getRole());
    SmallVector<IterationFinder::Value> touched;
    for (ValueRange values : {ValueRange(op.getOperands()), ValueRange(op.getResults())})
      for (Value value : values)
        touched.push_back(numbers.at(value));
    finder.addItem(describeItem(&op), touched);
  }
  IterationFinder::Later later;
  std::optional<IterationFinder::Range> range = finder.findIteration(iterations->missing(), later, why);
  if (!range)
    return std::nullopt;
  return FoundIteration{range->lastIteration(), range->end, {}};
}
