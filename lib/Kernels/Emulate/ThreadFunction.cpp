//===- ThreadFunction.cpp - a GPU kernel as a function of one thread ------===//

#include "ThreadFunction.h"
#include "Runtime/Descriptors.h"
#include "dialects/Spmd/Source.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace spmd::kernel {

/// Address spaces of NVPTX.
static constexpr unsigned kGlobal = 1, kShared = 3;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Bytes in memory of a scalar or vector.
static int64_t getAccessBytes(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return llvm::divideCeil(vector.getNumElements() * vector.getElementTypeBitWidth(), 8);
  return type.isIntOrFloat() ? llvm::divideCeil(type.getIntOrFloatBitWidth(), 8) : 8;
}

static EmulatedOp describeAccess(Operation *op, Type type, std::optional<uint64_t> alignment) {
  EmulatedOp described;
  llvm::raw_string_ostream(described.text) << op->getName().getStringRef() << " of " << type;
  described.bytes = getAccessBytes(type);
  described.alignment = alignment ? *alignment : llvm::PowerOf2Ceil(described.bytes);
  return described;
}

/// The op as the emulator is told of it, when it is one that the emulator is called for.
static std::optional<EmulatedOp> describeOp(Operation *op) {
  auto described =
      llvm::TypeSwitch<Operation *, std::optional<EmulatedOp>>(op)
          .Case([](LLVM::LoadOp load) { return describeAccess(load, load.getType(), load.getAlignment()); })
          .Case([](LLVM::StoreOp store) {
            return describeAccess(store, store.getValue().getType(), store.getAlignment());
          })
          .Case([](NVVM::LdMatrixOp load) {
            EmulatedOp described =
                describeAccess(load, VectorType::get({4}, IntegerType::get(load.getContext(), 32)), 16);
            described.text = "nvvm.ldmatrix";
            return described;
          })
          .Case([](NVVM::MmaOp) { return EmulatedOp{"nvvm.mma.sync", ""}; })
          .Case([](gpu::BarrierOp barrier) { return EmulatedOp{"gpu.barrier", ""}; })
          .Case([](gpu::ShuffleOp shuffle) {
            return EmulatedOp{("gpu.shuffle " + stringifyShuffleMode(shuffle.getMode())).str(), ""};
          })
          .Default([](Operation *) { return std::nullopt; });
  if (described)
    described->source = describeSource(op->getLoc());
  return described;
}

/// The tables behind the arguments: the constant globals that `function` takes the address of, each once.
static LogicalResult collectTables(gpu::GPUFuncOp function, SmallVectorImpl<LLVM::GlobalOp> &tables) {
  WalkResult walk = function.walk([&](LLVM::AddressOfOp address) -> WalkResult {
    auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(function, address.getGlobalNameAttr());
    if (!global)
      return address.emitOpError("names no global"), WalkResult::interrupt();
    if (global.getAddrSpace() == kShared)
      return WalkResult::advance();
    if (!global.getConstant() || !global.getValueOrNull())
      return address.emitOpError("is of a global that is neither a constant nor shared memory"),
             WalkResult::interrupt();
    if (!llvm::is_contained(tables, global))
      tables.push_back(global);
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// 16 x 8 x 16 of bf16 or f16, with sums of f32.
static bool isKnownProduct(NVVM::MmaOp op) {
  NVVM::MMAShapeAttr shape = op.getShape();
  auto type = op.getMultiplicandAPtxType();
  return shape.getM() == 16 && shape.getN() == 8 && shape.getK() == 16 && op.getLayoutA() == NVVM::MMALayout::row &&
         op.getLayoutB() == NVVM::MMALayout::col && type &&
         (*type == NVVM::MMATypes::bf16 || *type == NVVM::MMATypes::f16) && op.getOperandC().size() == 4 &&
         op.getOperandC()[0].getType().isF32();
}

/// Ops of the dialects that the code generator for CPUs knows, and of these three what addThreadFunction replaces.
static LogicalResult checkOps(gpu::GPUFuncOp function) {
  WalkResult walk = function.walk([&](Operation *op) -> WalkResult {
    StringRef dialect = op->getName().getDialectNamespace();
    bool isKnown = llvm::is_contained({"arith", "math", "scf", "cf", "vector", "ub"}, dialect);
    if (dialect == "gpu")
      isKnown = isa<gpu::GPUFuncOp, gpu::ReturnOp, gpu::BarrierOp, gpu::ShuffleOp, gpu::ThreadIdOp, gpu::BlockIdOp,
                    gpu::BlockDimOp, gpu::GridDimOp, gpu::LaneIdOp>(op);
    if (auto multiply = dyn_cast<NVVM::MmaOp>(op))
      isKnown = isKnownProduct(multiply);
    if (auto load = dyn_cast<NVVM::LdMatrixOp>(op))
      isKnown = load.getNum() == 4 && load.getEltType() == NVVM::LdStMatrixEltType::B16;
    if (dialect == "llvm")
      isKnown = !isa<LLVM::AtomicRMWOp, LLVM::AtomicCmpXchgOp, LLVM::CallOp, LLVM::InlineAsmOp>(op);
    if (!isKnown)
      return op->emitOpError("cannot be emulated"), WalkResult::interrupt();
    if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op))
      if (Type type = shuffle.getValue().getType(); !type.isIntOrFloat() || type.getIntOrFloatBitWidth() > 64)
        return op->emitOpError("of ") << type << " cannot be emulated", WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

FailureOr<EmulatedKernel> readKernel(gpu::GPUFuncOp function) {
  EmulatedKernel kernel;
  kernel.name = function.getName().str();
  auto getLaunch = [&](std::optional<ArrayRef<int32_t>> sizes, StringRef what, int64_t &size) -> LogicalResult {
    if (!sizes)
      return function.emitOpError("has no ") << what;
    if ((*sizes)[0] < 1 || (*sizes)[1] != 1 || (*sizes)[2] != 1)
      return function.emitOpError("has a ") << what << " that is not one-dimensional";
    size = (*sizes)[0];
    return success();
  };
  if (failed(getLaunch(function.getKnownBlockSize(), "known_block_size", kernel.blockSize)) ||
      failed(getLaunch(function.getKnownGridSize(), "known_grid_size", kernel.gridSize)))
    return failure();
  if (kernel.blockSize > emulation::kMaxThreads)
    return function.emitOpError("has blocks of ")
           << kernel.blockSize << " threads, more than " << emulation::kMaxThreads;
  auto bytes = function->getAttrOfType<DenseI64ArrayAttr>("spmd.arguments");
  auto operands = function->getAttrOfType<IntegerAttr>("spmd.operands");
  auto arguments = function.getArgumentTypes();
  if (!bytes || !operands || operands.getInt() > bytes.size() || bytes.size() > static_cast<int64_t>(arguments.size()))
    return function.emitOpError("needs spmd.arguments, the bytes behind each pointer, and spmd.operands, how many of "
                                "them are operands");
  for (auto [i, type] : llvm::enumerate(arguments)) {
    bool isPointer = static_cast<int64_t>(i) < bytes.size();
    if (isPointer ? type != LLVM::LLVMPointerType::get(function.getContext(), kGlobal) : !type.isInteger(64))
      return function.emitOpError("has argument ")
             << i << " of type " << type << "; expected "
             << (isPointer ? "a pointer into global memory" : "an i64, a coordinate");
  }
  llvm::append_range(kernel.argumentBytes, bytes.asArrayRef());
  kernel.numOperands = operands.getInt();
  if (auto shared = function->getAttrOfType<IntegerAttr>("spmd.shared_bytes"))
    kernel.sharedBytes = shared.getInt();
  if (failed(checkOps(function)) || failed(collectTables(function, kernel.tables)))
    return failure();
  function.walk([&](Operation *op) {
    if (std::optional<EmulatedOp> described = describeOp(op))
      kernel.ops.push_back(*described);
  });
  return kernel;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

namespace {

/// Turns the cloned body of a gpu.func into that of one thread.
class Rewriter {
public:
  Rewriter(LLVM::LLVMFuncOp function, const EmulatedKernel &kernel, bool isChecked)
      : function(function), kernel(kernel), isChecked(isChecked), b(function.getLoc(), function.getContext()),
        pointer(LLVM::LLVMPointerType::get(function.getContext())) {}

  void run();

private:
  enum Argument { kThread, kArgs, kCoords, kSharedMemory, kBlock, kNumber };
  Value get(Argument argument) { return function.getArgument(argument); }

  void rewriteArguments();
  void rewriteOp(Operation *op);
  void rewriteAccess(Operation *op, OpOperand &address, StringRef callee, int32_t number);
  void rewriteShuffle(gpu::ShuffleOp op, int32_t number);
  void rewriteLoad(NVVM::LdMatrixOp op, int32_t number);
  void rewriteProduct(NVVM::MmaOp op, int32_t number);
  Value getWords();
  Value getWord(int32_t number);
  void replaceByWords(Operation *op, int32_t first);
  void replaceByIndex(Operation *op, Value number);
  Value constant(int64_t value, unsigned bits) { return arith::ConstantIntOp::create(b, value, bits); }
  Value call(StringRef callee, Type result, ValueRange operands) {
    auto called = LLVM::CallOp::create(b, result ? TypeRange(result) : TypeRange(), callee, operands);
    return result ? called.getResult() : Value();
  }
  Value tagged(int64_t memory) {
    return LLVM::IntToPtrOp::create(b, pointer,
                                    constant(static_cast<int64_t>(emulation::getTaggedPointer(memory)), 64));
  }

  LLVM::LLVMFuncOp function;
  const EmulatedKernel &kernel;
  bool isChecked;
  ImplicitLocOpBuilder b;
  Type pointer;
  Value words;
};

} // namespace

void Rewriter::rewriteArguments() {
  Block &entry = function.getBody().front();
  b.setInsertionPointToStart(&entry);
  unsigned numArguments = kernel.argumentBytes.size(), numOld = entry.getNumArguments();
  SmallVector<Value> added;
  for (Type type : function.getArgumentTypes())
    added.push_back(entry.addArgument(type, function.getLoc()));
  for (unsigned i = 0; i < numOld; ++i) {
    bool isPointer = i < numArguments;
    Value value;
    if (isPointer && isChecked) {
      value = tagged(i);
    } else {
      Type type = isPointer ? pointer : Type(b.getI64Type());
      auto index = static_cast<int32_t>(isPointer ? i : i - numArguments);
      Value place = LLVM::GEPOp::create(b, pointer, type, added[isPointer ? kArgs : kCoords],
                                        ArrayRef<LLVM::GEPArg>(index));
      value = LLVM::LoadOp::create(b, type, place, /*alignment=*/8);
    }
    entry.getArgument(i).replaceAllUsesWith(value);
  }
  entry.eraseArguments(0, numOld);
}

void Rewriter::rewriteAccess(Operation *op, OpOperand &address, StringRef callee, int32_t number) {
  if (!isChecked)
    return;
  address.set(call(callee, pointer, {get(kThread), address.get(), constant(number, 32)}));
}

void Rewriter::rewriteShuffle(gpu::ShuffleOp op, int32_t number) {
  Type type = op.getValue().getType(), i64 = b.getI64Type();
  unsigned bits = type.getIntOrFloatBitWidth();
  Type integer = b.getIntegerType(bits);
  Value word = op.getValue();
  if (isa<FloatType>(type))
    word = arith::BitcastOp::create(b, integer, word);
  if (bits < 64)
    word = arith::ExtUIOp::create(b, i64, word);
  Value received = call("spmd_emulation_shuffle", i64,
                        {get(kThread), word, op.getOffset(), op.getWidth(),
                         constant(static_cast<int32_t>(op.getMode()), 32), constant(number, 32)});
  if (bits < 64)
    received = arith::TruncIOp::create(b, integer, received);
  if (isa<FloatType>(type))
    received = arith::BitcastOp::create(b, type, received);
  op.getShuffleResult().replaceAllUsesWith(received);
  if (!op.getValid().use_empty())
    op.getValid().replaceAllUsesWith(call("spmd_emulation_shuffle_valid", b.getI1Type(), {get(kThread)}));
  op.erase();
}

/// Memory of the thread for the fragments of one op, ten words.
Value Rewriter::getWords() {
  if (!words) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getBody().front());
    words = LLVM::AllocaOp::create(b, pointer, b.getI32Type(), constant(10, 64), /*alignment=*/16);
  }
  return words;
}

Value Rewriter::getWord(int32_t number) {
  return LLVM::GEPOp::create(b, pointer, b.getI32Type(), getWords(), ArrayRef<LLVM::GEPArg>(number));
}

void Rewriter::replaceByWords(Operation *op, int32_t first) {
  Value result = LLVM::LoadOp::create(b, op->getResult(0).getType(), getWord(first), /*alignment=*/4);
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

void Rewriter::rewriteLoad(NVVM::LdMatrixOp op, int32_t number) {
  Value row = op.getPtr();
  if (isChecked)
    row = call("spmd_emulation_load", pointer, {get(kThread), row, constant(number, 32)});
  call("spmd_emulation_load_matrices", Type(),
       {get(kThread), row, getWords(), constant(op.getLayout() == NVVM::MMALayout::col, 1), constant(number, 32)});
  replaceByWords(op, 0);
}

void Rewriter::rewriteProduct(NVVM::MmaOp op, int32_t number) {
  int32_t place = 0;
  for (Value fragment : op->getOperands())
    LLVM::StoreOp::create(b, fragment, getWord(place++), /*alignment=*/4);
  call("spmd_emulation_multiply", Type(),
       {get(kThread), getWords(), constant(*op.getMultiplicandAPtxType() == NVVM::MMATypes::f16, 1),
        constant(number, 32)});
  replaceByWords(op, 6);
}

void Rewriter::replaceByIndex(Operation *op, Value number) {
  op->getResult(0).replaceAllUsesWith(arith::IndexCastOp::create(b, b.getIndexType(), number));
  op->erase();
}

void Rewriter::rewriteOp(Operation *op) {
  b.setInsertionPoint(op);
  b.setLoc(op->getLoc());
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](gpu::ThreadIdOp) { replaceByIndex(op, get(kNumber)); })
      .Case([&](gpu::BlockIdOp) { replaceByIndex(op, get(kBlock)); })
      .Case([&](gpu::BlockDimOp) { replaceByIndex(op, constant(kernel.blockSize, 64)); })
      .Case([&](gpu::GridDimOp) { replaceByIndex(op, constant(kernel.gridSize, 64)); })
      .Case([&](gpu::LaneIdOp) {
        replaceByIndex(op, arith::RemUIOp::create(b, get(kNumber), constant(emulation::kLanes, 64)));
      })
      .Case([&](gpu::ReturnOp) {
        LLVM::ReturnOp::create(b, ValueRange());
        op->erase();
      })
      .Case([&](LLVM::AddressOfOp address) {
        Value value;
        const auto *table = llvm::find_if(kernel.tables, [&](LLVM::GlobalOp table) {
          return table.getSymNameAttr() == address.getGlobalNameAttr().getAttr();
        });
        bool isTable = table != kernel.tables.end();
        int64_t numArguments = kernel.argumentBytes.size(), numTables = kernel.tables.size();
        if (isChecked)
          value = tagged(numArguments + (isTable ? table - kernel.tables.begin() : numTables));
        else
          value = isTable ? Value(LLVM::AddressOfOp::create(b, pointer, address.getGlobalName())) : get(kSharedMemory);
        address.getResult().replaceAllUsesWith(value);
        op->erase();
      })
      .Case([&](LLVM::AllocaOp alloca) {
        if (!isChecked)
          return;
        b.setInsertionPointAfter(alloca);
        Value count = alloca.getArraySize();
        if (!count.getType().isInteger(64))
          count = arith::ExtUIOp::create(b, b.getI64Type(), count);
        auto element = static_cast<int64_t>(DataLayout::closest(alloca).getTypeSize(alloca.getElemType()));
        Value bytes = arith::MulIOp::create(b, count, constant(element, 64));
        Value local = call("spmd_emulation_local", pointer, {get(kThread), alloca.getResult(), bytes});
        alloca.getResult().replaceAllUsesExcept(local, local.getDefiningOp());
      });
}

void Rewriter::run() {
  // Numbered as readKernel did, before anything is added.
  SmallVector<std::pair<Operation *, int32_t>> called;
  SmallVector<Operation *> others;
  function.walk([&](Operation *op) {
    if (describeOp(op))
      called.push_back({op, static_cast<int32_t>(called.size())});
    else if (op != function)
      others.push_back(op);
  });
  function.walk([&](Block *block) {
    for (BlockArgument argument : block->getArguments())
      if (isa<LLVM::LLVMPointerType>(argument.getType()))
        argument.setType(pointer);
  });
  for (Operation *op : others)
    for (OpResult result : op->getResults())
      if (isa<LLVM::LLVMPointerType>(result.getType()))
        result.setType(pointer);
  for (auto [op, number] : called)
    if (auto load = dyn_cast<LLVM::LoadOp>(op); load && isa<LLVM::LLVMPointerType>(load.getType()))
      load.getResult().setType(pointer);
  rewriteArguments();
  for (Operation *op : others)
    rewriteOp(op);
  for (auto [op, number] : called) {
    b.setInsertionPoint(op);
    b.setLoc(op->getLoc());
    if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
      load.setInvariant(false);
      rewriteAccess(op, load.getAddrMutable(), "spmd_emulation_load", number);
    } else if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
      rewriteAccess(op, store.getAddrMutable(), "spmd_emulation_store", number);
    } else if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op)) {
      rewriteShuffle(shuffle, number);
    } else if (auto load = dyn_cast<NVVM::LdMatrixOp>(op)) {
      rewriteLoad(load, number);
    } else if (auto product = dyn_cast<NVVM::MmaOp>(op)) {
      rewriteProduct(product, number);
    } else {
      call("spmd_emulation_barrier", Type(), {get(kThread), constant(number, 32)});
      op->erase();
    }
  }
}

static LLVM::LLVMFunctionType getThreadType(MLIRContext *context) {
  Type pointer = LLVM::LLVMPointerType::get(context), i64 = IntegerType::get(context, 64);
  return LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer, pointer, pointer, pointer, i64, i64});
}

void addThreadFunction(ModuleOp module, gpu::GPUFuncOp function, const EmulatedKernel &kernel, bool isChecked,
                       StringRef name) {
  ImplicitLocOpBuilder b(function.getLoc(), function.getContext());
  b.setInsertionPointToEnd(module.getBody());
  auto thread = LLVM::LLVMFuncOp::create(b, name, getThreadType(b.getContext()));
  IRMapping mapping;
  function.getBody().cloneInto(&thread.getBody(), mapping);
  Rewriter(thread, kernel, isChecked).run();
}

void declareEmulator(ModuleOp module) {
  ImplicitLocOpBuilder b(module.getLoc(), module.getContext());
  b.setInsertionPointToStart(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), nothing = LLVM::LLVMVoidType::get(b.getContext());
  Type i1 = b.getI1Type(), i32 = b.getI32Type(), i64 = b.getI64Type();
  auto declare = [&](StringRef name, Type result, ArrayRef<Type> operands) {
    LLVM::LLVMFuncOp::create(b, name, LLVM::LLVMFunctionType::get(result, operands));
  };
  declare("spmd_emulation_barrier", nothing, {pointer, i32});
  declare("spmd_emulation_shuffle", i64, {pointer, i64, i32, i32, i32, i32});
  declare("spmd_emulation_shuffle_valid", i1, {pointer});
  declare("spmd_emulation_load_matrices", nothing, {pointer, pointer, pointer, i1, i32});
  declare("spmd_emulation_multiply", nothing, {pointer, pointer, i1, i32});
  declare("spmd_emulation_load", pointer, {pointer, pointer, i32});
  declare("spmd_emulation_store", pointer, {pointer, pointer, i32});
  declare("spmd_emulation_local", pointer, {pointer, pointer, i64});
}

} // namespace spmd::kernel
