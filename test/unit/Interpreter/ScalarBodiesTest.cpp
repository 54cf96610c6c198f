//===- ScalarBodiesTest.cpp - scalar bodies against ops in C++ ------------===//
//
// Every definition of ScalarDefinitions.h on operands that are hard, in all
// types and pairs of types that the op takes, in float64 and rounded to the
// program's types.
//===----------------------------------------------------------------------===//

#include "ScalarDefinitions.h"
#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "spmd/InitAll.h"
#include "spmd/Interpreter/Interpreter.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace spmd;
using namespace spmd::interp;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Zeros of both signs, subnormals of f16, f32 and f64, the largest of each and what rounds to more, where exponentials
/// overflow and vanish, and what is no number.
const std::vector<double> kReals = {
    0.0,       -0.0,       1,         -1,         0.5,    -2.5, -6.5,  -14,   3,      7.25,      88.7,
    -88.7,     -103.9,     709.5,     65504,      -65519, 6e-8, -2e-5, 1e-45, 1e-310, -4.9e-324, 3.4028234663852886e38,
    1.797e308, -1.797e308, kInfinity, -kInfinity, NAN};
const std::vector<int64_t> kIntegers = {0,
                                        1,
                                        -1,
                                        2,
                                        3,
                                        -3,
                                        7,
                                        63,
                                        127,
                                        -128,
                                        128,
                                        255,
                                        32767,
                                        -32768,
                                        2147483647,
                                        -2147483648,
                                        (int64_t(1) << 53) + 1,
                                        std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int64_t>::min()};
const std::vector<int64_t> kExponents = {0, 1, 2, 3, 7, 31, 63, 64, 65, 100, 127, -1, -2, -3};

/// What is tried of each operand: values of its type, without those that wrap to others.
Tensor valuesFor(DType dtype, char operand, bool isModerate) {
  if (isFloating(dtype)) {
    std::vector<double> values;
    for (double value : kReals)
      if (!isModerate || std::fabs(value) < 1e6 || !std::isfinite(value))
        values.push_back(value);
    int64_t count = values.size();
    return Tensor(dtype, {count}, std::move(values));
  }
  std::vector<int64_t> values;
  for (int64_t value : operand == 'e' ? kExponents : kIntegers)
    if (wrapTo(dtype, value) == value)
      values.push_back(value);
  int64_t count = values.size();
  return Tensor(dtype, {count}, std::move(values));
}

/// Steps between two floats in the order of all f64; the two zeros are one step from each other.
uint64_t unitsBetween(double a, double b) {
  auto place = [](double value) {
    uint64_t bits, sign = uint64_t(1) << 63;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits & sign ? ~bits : bits | sign;
  };
  uint64_t x = place(a), y = place(b);
  return x < y ? y - x : x - y;
}

class ScalarBodies : public ::testing::Test {
protected:
  ScalarBodies() : context(makeRegistry(), MLIRContext::Threading::DISABLED) { context.loadAllAvailableDialects(); }

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }

  Type typeOf(DType dtype) {
    llvm::StringRef name = toString(dtype);
    return parseType(dtype == DType::u8 ? "ui8" : name, &context);
  }

  /// The op alone in a function; `resultType` null is PyTorch's.
  func::FuncOp makeFunction(llvm::StringRef op, ArrayRef<Tensor> operands, DictionaryAttr attributes, Type resultType) {
    module = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    SmallVector<Type> types;
    for (const Tensor &operand : operands)
      types.push_back(RankedTensorType::get(operand.shape(), typeOf(operand.dtype())));
    auto function =
        func::FuncOp::create(builder, builder.getUnknownLoc(), "f", builder.getFunctionType(types, types.back()));
    Block *block = function.addEntryBlock();
    builder.setInsertionPointToEnd(block);
    OperationState state(builder.getUnknownLoc(), ("aten." + op).str(), block->getArguments(), types.back(),
                         attributes.getValue());
    Operation *created = builder.create(state);
    if (!resultType)
      resultType = cast<aten::AtenOpInterface>(created).getPointwiseType();
    auto type = RankedTensorType::get(operands.front().shape(), resultType);
    created->getResult(0).setType(type);
    func::ReturnOp::create(builder, builder.getUnknownLoc(), created->getResults());
    function.setFunctionType(builder.getFunctionType(types, type));
    return function;
  }

  void check(const ScalarDefinition &definition, ArrayRef<DType> dtypes, llvm::StringRef attributes,
             Precision precision);

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

void ScalarBodies::check(const ScalarDefinition &definition, ArrayRef<DType> dtypes, llvm::StringRef attributes,
                         Precision precision) {
  // Every combination of values of the operands.
  SmallVector<Tensor> values, operands;
  int64_t count = 1;
  for (auto [dtype, operand] : llvm::zip_equal(dtypes, llvm::StringRef(definition.operands))) {
    values.push_back(valuesFor(dtype, operand, definition.ulps != 0));
    count *= values.back().numel();
  }
  int64_t repeat = count;
  for (const Tensor &tensor : values) {
    repeat /= tensor.numel();
    Tensor operand(tensor.dtype(), {count});
    for (int64_t i = 0; i < count; ++i)
      operand.copyElement(i, tensor, i / repeat % tensor.numel());
    operands.push_back(precision == Precision::program ? operand.rounded() : operand);
  }
  auto dictionary = cast<DictionaryAttr>(parseAttribute(attributes, &context));
  func::FuncOp function = makeFunction(definition.op, operands, dictionary, {});
  std::string what = definition.op + attributes.str() + " of";
  for (DType dtype : dtypes)
    what += " " + toString(dtype).str();
  ASSERT_TRUE(succeeded(verify(*module))) << what;

  Failure failure;
  Options options;
  options.precision = precision;
  auto results = callFunction(function, operands, options, failure);
  ASSERT_TRUE(succeeded(results)) << what;
  const Tensor &got = results->front();

  SmallVector<double> realScalars;
  SmallVector<int64_t> integerScalars;
  bool isOfIntegers = llvm::none_of(operands, [](const Tensor &tensor) { return tensor.isFloating(); });
  bool areIntegers = isOfIntegers && !got.isFloating();
  for (const char *name : definition.scalars) {
    Attribute scalar = dictionary.get(name);
    areIntegers &= isa<IntegerAttr>(scalar);
    realScalars.push_back(aten::getScalarValue(scalar));
    integerScalars.push_back(isa<IntegerAttr>(scalar) ? cast<IntegerAttr>(scalar).getInt() : 0);
  }
  if (areIntegers) {
    ASSERT_TRUE(definition.integers) << what;
    for (int64_t i = 0; i < count; ++i) {
      SmallVector<int64_t> v;
      for (const Tensor &operand : operands)
        v.push_back(operand.integers()[i]);
      v.append(integerScalars);
      ASSERT_EQ(got.integers()[i], wrapTo(got.dtype(), definition.integers(v.data())))
          << what << " at " << v[0] << ", " << v.back();
    }
    return;
  }
  // PyTorch takes no fraction that scales integers.
  if (isOfIntegers && !got.isFloating() && got.dtype() != DType::i1)
    return;
  ASSERT_TRUE(definition.reals) << what;
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<double> v;
    for (const Tensor &operand : operands)
      v.push_back(operand.at(i));
    v.append(realScalars);
    double expected = definition.reals(v.data());
    if (!got.isFloating()) {
      ASSERT_EQ(got.at(i), expected) << what << " at " << v[0] << ", " << v.back();
      continue;
    }
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got.at(i))) << what << " at " << v[0] << ", " << v.back() << " is " << got.at(i);
      continue;
    }
    DType rounding = precision == Precision::program ? got.dtype() : DType::f64;
    uint64_t units = unitsBetween(got.at(i), roundTo(rounding, expected));
    // What is nearly right may round to the neighbour.
    bool isNeighbour = false;
    if (definition.ulps != 0 && rounding != DType::f64) {
      double below = expected, above = expected;
      for (uint64_t unit = 0; unit < definition.ulps; ++unit) {
        below = std::nextafter(below, -kInfinity);
        above = std::nextafter(above, kInfinity);
      }
      isNeighbour = got.at(i) == roundTo(rounding, below) || got.at(i) == roundTo(rounding, above);
    }
    ASSERT_TRUE(units <= definition.ulps || isNeighbour)
        << what << " at " << v[0] << ", " << v.back() << " is " << got.at(i) << ", expected " << expected << " ("
        << units << " units)";
  }
}

TEST_F(ScalarBodies, AreWhatTheOpsAreInCpp) {
  const std::vector<DType> floats = {DType::f64, DType::f32, DType::f16, DType::bf16};
  const std::vector<DType> integers = {DType::i64, DType::i32, DType::i16, DType::i8, DType::u8};
  const std::vector<std::pair<DType, DType>> mixed = {{DType::f32, DType::i64},  {DType::i32, DType::f16},
                                                      {DType::f16, DType::bf16}, {DType::i8, DType::i64},
                                                      {DType::u8, DType::i8},    {DType::i1, DType::i32}};
  for (const ScalarDefinition &definition : getScalarDefinitions()) {
    llvm::StringRef types = definition.types, letters = definition.operands;
    std::vector<std::pair<DType, DType>> tried;
    for (DType dtype : floats)
      if (types.contains('f'))
        tried.push_back({dtype, dtype});
    for (DType dtype : integers)
      if (types.contains('i'))
        tried.push_back({dtype, dtype});
    if (types.contains('b'))
      tried.push_back({DType::i1, DType::i1});
    if (types == "fib" && letters.count('t') > 1)
      tried.insert(tried.end(), mixed.begin(), mixed.end());
    for (auto [first, others] : tried)
      for (const char *attributes : definition.attributes)
        for (Precision precision : {Precision::f64, Precision::program}) {
          SmallVector<DType> dtypes;
          bool isFirst = true;
          for (char letter : letters) {
            dtypes.push_back(letter == 'm' ? DType::i1 : isFirst ? first : others);
            isFirst &= letter == 'm';
          }
          check(definition, dtypes, attributes, precision);
        }
  }
}

/// Casts that PyTorch defines: floats whose integer part the integer holds.
TEST_F(ScalarBodies, CastAsTensorsAreConverted) {
  const DType all[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                       DType::i32, DType::i16, DType::i8,  DType::u8,   DType::i1};
  for (DType from : all)
    for (DType to : all) {
      Tensor values = valuesFor(from, 't', /*isModerate=*/false);
      if (isFloating(from) && !isFloating(to) && to != DType::i1)
        values =
            Tensor(from, {7}, std::vector<double>{0.0, -0.0, 0.75, 1.5, 100.25, 127, to == DType::u8 ? 3 : -127.9});
      std::string attributes = "{dtype = " + (to == DType::u8 ? "ui8" : toString(to).str()) + "}";
      func::FuncOp function =
          makeFunction("_to_copy", values, cast<DictionaryAttr>(parseAttribute(attributes, &context)), typeOf(to));
      ASSERT_TRUE(succeeded(verify(*module)));
      Failure failure;
      auto results = callFunction(function, values, Options(), failure);
      ASSERT_TRUE(succeeded(results));
      EXPECT_TRUE(results->front().identical(values.converted(to)))
          << toString(from).str() << " to " << toString(to).str();
    }
}

} // namespace
