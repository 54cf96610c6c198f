//===- MutateKernels.cpp - spmd-mutate-gpu-kernels ------------------------===//
//
// Tests of the tests: what finds mistakes must find the ones that are put in on purpose.
//
//===----------------------------------------------------------------------===//

#include "dialects/Spmd/Source.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "spmd/Kernels/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace spmd::kernel {

#define GEN_PASS_DEF_MUTATEGPUKERNELS
#include "spmd/Kernels/Passes.h.inc"

static void probePlace(Operation *op);

namespace {

/// A mistake: its name, and what makes it in a kernel when told the op to make it at. `probe`, where there is one,
/// leaves the kernel correct and fails a check where a thread would decide otherwise with the mistake, or comes to its
/// place.
struct Mistake {
  StringRef name;
  void (*make)(Operation *op);
  void (*probe)(Operation *op) = probePlace;
};

} // namespace

static void dropOp(Operation *op) { op->erase(); }

static void shiftIndex(Operation *op) {
  auto address = cast<LLVM::GEPOp>(op);
  OpBuilder b(op);
  Value index = address.getDynamicIndices()[0];
  Value one = arith::ConstantIntOp::create(b, op->getLoc(), index.getType(), 1);
  address.getDynamicIndicesMutable()[0].set(arith::AddIOp::create(b, op->getLoc(), index, one));
}

/// The buffer in front of this one loses its last 16 bytes.
static void moveBuffer(Operation *op) {
  auto address = cast<LLVM::GEPOp>(op);
  OpBuilder b(op);
  Value offset = address.getDynamicIndices()[0];
  Value bytes = arith::ConstantIntOp::create(b, op->getLoc(), offset.getType(), 16);
  address.getDynamicIndicesMutable()[0].set(arith::SubIOp::create(b, op->getLoc(), offset, bytes));
}

static void shrinkShared(Operation *op) {
  auto bytes = op->getAttrOfType<IntegerAttr>("spmd.shared_bytes");
  op->setAttr("spmd.shared_bytes", IntegerAttr::get(bytes.getType(), bytes.getInt() - 16));
}

/// A store to where nothing is, when `condition` holds.
static void failIf(OpBuilder &b, Location loc, Value condition) {
  auto choice = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  b.setInsertionPointToStart(choice.thenBlock());
  auto function = choice->getParentOfType<gpu::GPUFuncOp>();
  Value far = arith::ConstantIntOp::create(b, loc, int64_t(1) << 40, 64),
        zero = arith::ConstantIntOp::create(b, loc, 0, 8);
  Value pointer = function.getArgument(0);
  LLVM::StoreOp::create(b, loc, zero, LLVM::GEPOp::create(b, loc, pointer.getType(), zero.getType(), pointer, far), 1);
}

/// Makes the kernel fail if any thread comes to `op`: a mistake there can be found.
static void probePlace(Operation *op) {
  OpBuilder b(op);
  failIf(b, op->getLoc(), arith::ConstantIntOp::create(b, op->getLoc(), 1, 1));
}

/// Off by one, or the opposite where there is no such thing.
static arith::CmpIPredicate getChanged(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  static const std::pair<P, P> changes[] = {{P::eq, P::ne},   {P::ne, P::eq},   {P::slt, P::sle}, {P::sle, P::slt},
                                            {P::sgt, P::sge}, {P::sge, P::sgt}, {P::ult, P::ule}, {P::ule, P::ult},
                                            {P::ugt, P::uge}, {P::uge, P::ugt}};
  return llvm::find_if(changes, [&](auto &entry) { return entry.first == predicate; })->second;
}

static void changeComparison(Operation *op) {
  auto compare = cast<arith::CmpIOp>(op);
  compare.setPredicate(getChanged(compare.getPredicate()));
}

static void probeComparison(Operation *op) {
  auto compare = cast<arith::CmpIOp>(op);
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  Value other = arith::CmpIOp::create(b, op->getLoc(), getChanged(compare.getPredicate()), compare.getLhs(),
                                      compare.getRhs());
  failIf(b, op->getLoc(), arith::XOrIOp::create(b, op->getLoc(), compare.getResult(), other));
}

static void changeFloatComparison(Operation *op) {
  using P = arith::CmpFPredicate;
  static const std::pair<P, P> opposites[] = {{P::OGT, P::ULE}, {P::OGE, P::ULT}, {P::OLT, P::UGE}, {P::OLE, P::UGT},
                                              {P::OEQ, P::UNE}, {P::ONE, P::UEQ}, {P::ORD, P::UNO}};
  auto compare = cast<arith::CmpFOp>(op);
  for (auto [a, b] : opposites)
    if (compare.getPredicate() == a || compare.getPredicate() == b)
      return compare.setPredicate(compare.getPredicate() == a ? b : a);
}

/// Half the distance, or another lane.
static void changeShuffle(Operation *op) {
  auto shuffle = cast<gpu::ShuffleOp>(op);
  OpBuilder b(op);
  APInt offset;
  Value changed;
  if (matchPattern(shuffle.getOffset(), m_ConstantInt(&offset)))
    changed = arith::ConstantIntOp::create(b, op->getLoc(), offset == 1 ? 2 : offset.getSExtValue() / 2, 32);
  else
    changed = arith::AddIOp::create(b, op->getLoc(), shuffle.getOffset(),
                                    arith::ConstantIntOp::create(b, op->getLoc(), 1, 32));
  shuffle.getOffsetMutable().set(changed);
}

static void shortenLoop(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  OpBuilder b(op);
  Value one = arith::ConstantIntOp::create(b, op->getLoc(), loop.getUpperBound().getType(), 1);
  loop.getUpperBoundMutable().set(arith::SubIOp::create(b, op->getLoc(), loop.getUpperBound(), one));
}

/// Makes the kernel fail if any thread runs `op` with the last number below its bound: a wrong bound can be found.
static void probeLoop(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  OpBuilder b(op);
  Location loc = op->getLoc();
  Value one = arith::ConstantIntOp::create(b, loc, loop.getUpperBound().getType(), 1);
  Value last = arith::SubIOp::create(b, loc, loop.getUpperBound(), one);
  Value distance = arith::SubIOp::create(b, loc, last, loop.getLowerBound());
  Value rest = arith::RemSIOp::create(b, loc, distance, loop.getStep());
  Value zero = arith::SubIOp::create(b, loc, one, one);
  Value isReached = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest, zero);
  Value runs = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, distance, zero);
  failIf(b, loc, arith::AndIOp::create(b, loc, runs, isReached));
}

//===----------------------------------------------------------------------===//
// Products of matrices ([Note: matrices of a warp] in ../Gpu/WarpMatrices.h)
//===----------------------------------------------------------------------===//

/// The row of each matrix begins 16 bytes, a row of another, later.
static void shiftFragment(Operation *op) {
  auto load = cast<NVVM::LdMatrixOp>(op);
  OpBuilder b(op);
  Value pointer = load.getPtr();
  load.getPtrMutable().set(
      LLVM::GEPOp::create(b, op->getLoc(), pointer.getType(), b.getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{16}));
}

static void transposeFragment(Operation *op) {
  auto load = cast<NVVM::LdMatrixOp>(op);
  bool isRow = load.getLayout() == NVVM::MMALayout::row;
  load.setLayout(isRow ? NVVM::MMALayout::col : NVVM::MMALayout::row);
}

/// Of four matrices the second and the third change places: halves of rows and of columns.
static void exchangeFragments(Operation *op) {
  for (Operation *user : op->getUsers()) {
    auto word = cast<LLVM::ExtractValueOp>(user);
    int64_t number = word.getPosition()[0];
    word.setPosition({number == 1 ? 2 : number == 2 ? 1 : number});
  }
}

/// The words of A are its upper and lower rows, then those of the next eight columns; of B the halves along k.
static void exchangeRows(Operation *op) {
  MutableOperandRange left = cast<NVVM::MmaOp>(op).getOperandAMutable();
  Value second = left[1].get();
  left[1].set(left[2].get());
  left[2].set(second);
}

static void exchangeParts(Operation *op) {
  MutableOperandRange right = cast<NVVM::MmaOp>(op).getOperandBMutable();
  Value first = right[0].get();
  right[0].set(right[1].get());
  right[1].set(first);
}

/// B is the upper rows of A, and they are B.
static void exchangeOperands(Operation *op) {
  MutableOperandRange left = cast<NVVM::MmaOp>(op).getOperandAMutable(),
                      right = cast<NVVM::MmaOp>(op).getOperandBMutable();
  for (unsigned half : {0, 1}) {
    Value upper = left[2 * half].get();
    left[2 * half].set(right[half].get());
    right[half].set(upper);
  }
}

static void dropAccumulator(Operation *op) {
  OpBuilder b(op);
  MutableOperandRange sum = cast<NVVM::MmaOp>(op).getOperandCMutable();
  Value zero = arith::ConstantOp::create(b, op->getLoc(), b.getF32FloatAttr(0));
  for (unsigned i = 0; i < sum.size(); ++i)
    sum[i].set(zero);
}

/// The sums of the upper rows are added to the lower ones', and these to those.
static void exchangeAccumulators(Operation *op) {
  MutableOperandRange sum = cast<NVVM::MmaOp>(op).getOperandCMutable();
  for (unsigned i : {0, 1}) {
    Value upper = sum[i].get();
    sum[i].set(sum[i + 2].get());
    sum[i + 2].set(upper);
  }
}

/// The sum stays what it was.
static void dropProduct(Operation *op) {
  OperandRange sum = cast<NVVM::MmaOp>(op).getOperandC();
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    auto element = cast<LLVM::ExtractValueOp>(user);
    element.getResult().replaceAllUsesWith(sum[static_cast<unsigned>(element.getPosition()[0])]);
    element.erase();
  }
  op->erase();
}

/// Makes the kernel fail where any sum is not zero, or one of the upper rows is not that of the lower one.
template <bool isZeroEnough>
static void probeAccumulator(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  OperandRange sum = cast<NVVM::MmaOp>(op).getOperandC();
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0)), differs;
  for (unsigned i : {0, 1, 2, 3}) {
    Value other = isZeroEnough ? zero : sum[i ^ 2];
    Value here = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, sum[i], other);
    differs = differs ? Value(arith::OrIOp::create(b, loc, differs, here)) : here;
  }
  failIf(b, loc, differs);
}

static bool isShared(Value pointer) { return cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace() == 3; }

/// A place inside of shared memory that is one of its buffers: a constant number of bytes behind its start.
static bool isBuffer(LLVM::GEPOp address) {
  return isShared(address.getBase()) && address.getBase().getDefiningOp<LLVM::AddressOfOp>() &&
         address.getElemType().isInteger(8) && !address.getDynamicIndices().empty() &&
         matchPattern(address.getDynamicIndices()[0], m_Constant()) &&
         !matchPattern(address.getDynamicIndices()[0], m_Zero());
}

/// The mistakes that can be made at an op.
static SmallVector<Mistake> getMistakes(Operation *op) {
  SmallVector<Mistake> mistakes;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](gpu::BarrierOp) { mistakes.push_back({"drop-barrier", dropOp}); })
      .Case([&](gpu::ShuffleOp) { mistakes.push_back({"change-shuffle", changeShuffle}); })
      .Case([&](LLVM::StoreOp) { mistakes.push_back({"drop-store", dropOp}); })
      .Case([&](NVVM::LdMatrixOp) {
        mistakes.push_back({"shift-fragment", shiftFragment});
        mistakes.push_back({"transpose-fragment", transposeFragment});
        mistakes.push_back({"exchange-fragments", exchangeFragments});
      })
      .Case([&](NVVM::MmaOp) {
        mistakes.push_back({"exchange-rows", exchangeRows});
        mistakes.push_back({"exchange-parts", exchangeParts});
        mistakes.push_back({"exchange-operands", exchangeOperands});
        mistakes.push_back({"drop-accumulator", dropAccumulator, probeAccumulator</*isZeroEnough=*/true>});
        mistakes.push_back({"exchange-accumulators", exchangeAccumulators, probeAccumulator</*isZeroEnough=*/false>});
        mistakes.push_back({"drop-product", dropProduct});
      })
      .Case([&](scf::ForOp) { mistakes.push_back({"shorten-loop", shortenLoop, probeLoop}); })
      .Case([&](arith::CmpIOp compare) {
        bool isScalar = compare.getType().isInteger(1);
        mistakes.push_back({"change-comparison", changeComparison, isScalar ? probeComparison : probePlace});
      })
      .Case([&](arith::CmpFOp compare) {
        // A comparison with itself asks for NaN.
        if (compare.getLhs() != compare.getRhs())
          mistakes.push_back({"change-comparison", changeFloatComparison});
      })
      .Case([&](LLVM::GEPOp address) {
        if (isBuffer(address))
          mistakes.push_back({"shrink-buffer", moveBuffer});
        else if (!address.getDynamicIndices().empty())
          mistakes.push_back({"shift-index", shiftIndex});
      })
      .Case([&](gpu::GPUFuncOp function) {
        auto bytes = function->getAttrOfType<IntegerAttr>("spmd.shared_bytes");
        if (bytes && bytes.getInt() >= 16)
          mistakes.push_back({"shrink-buffer", shrinkShared, nullptr});
      });
  return mistakes;
}

namespace {
struct MutateGpuKernels : impl::MutateGpuKernelsBase<MutateGpuKernels> {
  using MutateGpuKernelsBase::MutateGpuKernelsBase;
  void runOnOperation() override {
    for (auto module : getOperation().getOps<gpu::GPUModuleOp>())
      for (auto function : llvm::make_early_inc_range(module.getOps<gpu::GPUFuncOp>()))
        mutate(function);
  }

  /// One copy of `function` per op and mistake.
  void mutate(gpu::GPUFuncOp function) {
    OpBuilder builder(function);
    SmallVector<Operation *> ops;
    function->walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
    unsigned count = 0;
    for (auto [place, op] : llvm::enumerate(ops))
      for (const Mistake &mistake : getMistakes(op)) {
        if (!only.empty() && !llvm::is_contained(only, mistake.name))
          continue;
        auto mutant = cast<gpu::GPUFuncOp>(builder.clone(*function));
        mutant.setName((function.getName() + "_m" + Twine(count++)).str());
        SmallVector<Operation *> copies;
        mutant->walk<WalkOrder::PreOrder>([&](Operation *copy) { copies.push_back(copy); });
        std::string text = mistake.name.str() + " at op " + std::to_string(place) + ", ";
        llvm::raw_string_ostream stream(text);
        if (op == function)
          stream << "the end of shared memory";
        else
          op->print(stream, OpPrintingFlags().skipRegions().useLocalScope());
        mutant->setAttr("spmd.mutant", builder.getStringAttr(text));
        if (!probes)
          mistake.make(copies[place]);
        else if (mistake.probe)
          mistake.probe(copies[place]);
        else
          mutant.erase();
      }
    function.erase();
  }
};
} // namespace

} // namespace spmd::kernel
