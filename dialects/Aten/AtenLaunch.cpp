//===- AtenLaunch.cpp - Launch of a kernel of the user's ------------------===//

#include "dialects/Aten/AtenLaunch.h"

#include "dialects/Aten/AtenCustomCall.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::aten;

/// What the types of parameters that are numbers are called.
static constexpr std::array<StringRef, 6> kTypes = {"bool", "int", "unsigned", "int64_t", "float", "double"};

namespace {

/// What an expression gives.
struct Number {
  bool isReal = false;
  int64_t integer = 0;
  double real = 0;

  double asReal() const { return isReal ? real : static_cast<double>(integer); }
};

/// Reads one text, and computes what it says; the first mistake is in `error`.
class LaunchReader {
public:
  LaunchReader(StringRef text, const LaunchScope &scope, std::string &error);
  std::optional<LaunchSpec> read();

private:
  /// A size, or dim3 of up to three.
  bool readSizes(std::array<int64_t, 3> &sizes, StringRef what);
  bool readParameters(SmallVectorImpl<Attribute> &parameters);
  bool readParameter(SmallVectorImpl<Attribute> &parameters);
  bool readNumber(StringRef type, SmallVectorImpl<Attribute> &parameters);
  bool readInteger(int64_t &value, StringRef what);
  bool readSum(Number &value);
  bool readTerm(Number &value);
  bool readFactor(Number &value);
  bool readCall(StringRef name, Number &value);
  bool readConstant(Number &value);
  /// left = left `operation` right.
  bool compute(char operation, Number &left, const Number &right);
  bool computeIntegers(char operation, int64_t a, int64_t b, int64_t &result);

  ArrayRef<int64_t> shapeOf(int64_t tensor) const {
    auto index = static_cast<size_t>(tensor);
    return index < scope.inputs.size() ? scope.inputs[index] : scope.results[index - scope.inputs.size()];
  }
  bool consume(StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }
  /// The operator that comes next, of those in `operators`; 0: none.
  char consumeAnyOf(StringRef operators) {
    for (char c : operators)
      if (consume(StringRef(&c, 1)))
        return c;
    return 0;
  }
  bool expect(StringRef token) { return consume(token) || fail("'" + token + "' is expected " + here()); }
  /// The name that comes next; empty when something else does.
  StringRef readName();
  std::string here() const;
  bool fail(const Twine &message) {
    if (error.empty())
      error = message.str();
    return false;
  }

  StringRef rest;
  int depth = 0; ///< of factors in each other
  const LaunchScope &scope;
  std::string &error;
  llvm::StringMap<Number> numbers;
  llvm::StringMap<int64_t> tensors; ///< inputs, then results
};

} // namespace

LaunchReader::LaunchReader(StringRef text, const LaunchScope &scope, std::string &error)
    : rest(text), scope(scope), error(error) {
  error.clear();
  for (const auto &dimension : getDimensions(scope.sharding, scope.inputs))
    numbers[dimension.getKey()].integer = dimension.getValue();
  int64_t next = 0;
  for (auto [name, argument] : llvm::zip(scope.names, scope.arguments)) {
    if (numbers.contains(name))
      fail("'" + name + "' is a dimension and an argument of the operator");
    if (isa<UnitAttr>(argument))
      tensors[name] = next++;
    else if (auto flag = dyn_cast<BoolAttr>(argument))
      numbers[name].integer = flag.getValue();
    else if (auto integer = dyn_cast<IntegerAttr>(argument))
      numbers[name].integer = integer.getInt();
    else if (auto real = dyn_cast<FloatAttr>(argument))
      numbers[name] = {true, 0, real.getValueAsDouble()};
  }
  for (size_t i = 0; i < scope.results.size(); ++i, ++next) {
    std::string name = scope.results.size() == 1 ? "result" : "result" + std::to_string(i);
    if (!tensors.try_emplace(name, next).second || numbers.contains(name))
      fail("'" + name + "' is what the operator returns, and an argument or a dimension");
  }
}

std::string LaunchReader::here() const {
  if (rest.empty())
    return "at its end";
  size_t end = 24; // not in the middle of a character
  while (end < rest.size() && (static_cast<unsigned char>(rest[end]) & 0xc0) == 0x80)
    ++end;
  return ("before '" + rest.take_front(end) + "'").str();
}

StringRef LaunchReader::readName() {
  rest = rest.ltrim();
  if (rest.empty() || llvm::isDigit(rest.front()))
    return "";
  StringRef name = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; });
  rest = rest.drop_front(name.size());
  return name;
}

bool LaunchReader::computeIntegers(char operation, int64_t a, int64_t b, int64_t &result) {
  bool overflows = false;
  switch (operation) {
  case '+':
    overflows = llvm::AddOverflow(a, b, result);
    break;
  case '-':
    overflows = llvm::SubOverflow(a, b, result);
    break;
  case '*':
    overflows = llvm::MulOverflow(a, b, result);
    break;
  default:
    if (b == 0)
      return fail("it divides " + Twine(a) + " by 0");
    overflows = a == INT64_MIN && b == -1;
    if (!overflows)
      result = operation == '/' ? a / b : a % b;
  }
  return !overflows || fail("a number has more than 64 bits");
}

bool LaunchReader::compute(char operation, Number &left, const Number &right) {
  if (!left.isReal && !right.isReal)
    return computeIntegers(operation, left.integer, right.integer, left.integer);
  double a = left.asReal(), b = right.asReal();
  if (operation == '%')
    return fail("'%' is for whole numbers");
  left = {true, 0, operation == '+' ? a + b : operation == '-' ? a - b : operation == '*' ? a * b : a / b};
  return true;
}

bool LaunchReader::readSum(Number &value) {
  if (!readTerm(value))
    return false;
  while (char operation = consumeAnyOf("+-")) {
    Number right;
    if (!readTerm(right) || !compute(operation, value, right))
      return false;
  }
  return true;
}

bool LaunchReader::readTerm(Number &value) {
  if (!readFactor(value))
    return false;
  while (char operation = consumeAnyOf("*/%")) {
    Number right;
    if (!readFactor(right) || !compute(operation, value, right))
      return false;
  }
  return true;
}

bool LaunchReader::readConstant(Number &value) {
  StringRef text = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '.'; });
  value = Number();
  if (text.getAsInteger(0, value.integer)) {
    value.isReal = true;
    if (text.empty() || text.getAsDouble(value.real))
      return fail("a number is expected " + here());
  }
  rest = rest.drop_front(text.size());
  return true;
}

bool LaunchReader::readFactor(Number &value) {
  constexpr int kDeepest = 200;
  llvm::SaveAndRestore<int> deeper(depth, depth + 1);
  if (depth > kDeepest)
    return fail("it has more than " + Twine(kDeepest) + " operations in each other");
  if (consume("-")) {
    Number operand;
    value = Number();
    return readFactor(operand) && compute('-', value, operand);
  }
  if (consume("("))
    return readSum(value) && expect(")");
  StringRef name = readName();
  if (name.empty())
    return readConstant(value);
  if (consume("("))
    return readCall(name, value);
  if (auto found = numbers.find(name); found != numbers.end()) {
    value = found->second;
    return true;
  }
  if (tensors.contains(name))
    return fail("'" + name + "' is a tensor, and a number is expected");
  if (llvm::is_contained(scope.names, name))
    return fail("'" + name + "' is a list of numbers, which a kernel does not get");
  SmallVector<StringRef> known(numbers.keys());
  llvm::erase_if(known, [](StringRef dimension) { return dimension.starts_with("."); });
  llvm::sort(known);
  return fail("nothing is called '" + name + "'; numbers are " + llvm::join(known, ", ") + (known.empty() ? "" : ", ") +
              "size(tensor, dim) and numel(tensor)");
}

bool LaunchReader::readCall(StringRef name, Number &value) {
  if (name == "min" || name == "max") {
    Number right;
    if (!readSum(value) || !expect(",") || !readSum(right) || !expect(")"))
      return false;
    bool isLess = value.isReal || right.isReal ? right.asReal() < value.asReal() : right.integer < value.integer;
    if (isLess == (name == "min"))
      value = right;
    return true;
  }
  if (name != "size" && name != "numel")
    return fail("there is no function '" + name + "'; allowed: size, numel, min, max");
  StringRef tensor = readName();
  auto found = tensors.find(tensor);
  if (found == tensors.end())
    return fail(name + " is of a tensor, and '" + tensor + "' is none");
  ArrayRef<int64_t> shape = shapeOf(found->second);
  value = Number();
  if (name == "numel") {
    value.integer = ShapedType::getNumElements(shape);
    return expect(")");
  }
  int64_t dim = 0, rank = static_cast<int64_t>(shape.size());
  if (!expect(",") || !readInteger(dim, "the dimension") || !expect(")"))
    return false;
  if (dim < -rank || dim >= rank)
    return fail("'" + tensor + "' has no dimension " + Twine(dim) + "; it has " + Twine(rank));
  value.integer = shape[static_cast<size_t>(dim < 0 ? dim + rank : dim)];
  return true;
}

bool LaunchReader::readInteger(int64_t &value, StringRef what) {
  Number number;
  if (!readSum(number))
    return false;
  value = number.integer;
  return !number.isReal || fail(what + " is no whole number");
}

bool LaunchReader::readSizes(std::array<int64_t, 3> &sizes, StringRef what) {
  sizes = {1, 1, 1};
  StringRef before = rest;
  if (readName() != "dim3" || !consume("(")) {
    rest = before;
    return readInteger(sizes[0], what);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!readInteger(sizes[i], what))
      return false;
    if (i + 1 < sizes.size() && !consume(","))
      break;
  }
  return expect(")");
}

bool LaunchReader::readNumber(StringRef type, SmallVectorImpl<Attribute> &parameters) {
  Number number;
  if (!readSum(number))
    return false;
  Builder b(scope.arguments.getContext());
  if (type == "double") {
    parameters.push_back(b.getF64FloatAttr(number.asReal()));
    return true;
  }
  if (type == "float") {
    parameters.push_back(b.getF32FloatAttr(static_cast<float>(number.asReal())));
    return true;
  }
  if (number.isReal)
    return fail(llvm::formatv("a parameter of type {0} gets {1}, which is no whole number", type, number.real).str());
  int64_t value = number.integer;
  bool fits = type == "int"        ? llvm::isInt<32>(value)
              : type == "unsigned" ? value >= 0 && llvm::isUInt<32>(static_cast<uint64_t>(value))
              : type == "bool"     ? value == 0 || value == 1
                                   : true;
  if (!fits)
    return fail("a parameter of type " + type + " cannot be " + Twine(value));
  unsigned width = type == "int64_t" ? 64 : type == "bool" ? 1 : 32;
  parameters.push_back(IntegerAttr::get(b.getIntegerType(width), APInt(64, static_cast<uint64_t>(value)).trunc(width)));
  return true;
}

bool LaunchReader::readParameter(SmallVectorImpl<Attribute> &parameters) {
  std::string place = here();
  StringRef name = readName();
  if (llvm::is_contained(kTypes, name))
    return readNumber(name, parameters);
  if (auto found = tensors.find(name); found != tensors.end()) {
    parameters.push_back(Builder(scope.arguments.getContext()).getIndexAttr(found->second));
    return true;
  }
  std::string types = llvm::join(kTypes, ", ");
  if (numbers.contains(name))
    return fail("'" + name + "' is a number, which has its type in front of it: " + types);
  return fail("a tensor is expected, or a type (" + types + ") and a number, " + place);
}

bool LaunchReader::readParameters(SmallVectorImpl<Attribute> &parameters) {
  if (consume(")"))
    return true;
  do {
    if (!readParameter(parameters))
      return false;
  } while (consume(","));
  return expect(")");
}

/// What CUDA does not launch; empty when it does.
static std::string findLaunchProblem(const LaunchSpec &launch) {
  constexpr int64_t kMostBlocks[] = {INT32_MAX, 65535, 65535}, kMostThreads[] = {1024, 1024, 64};
  constexpr int64_t kMostShared = 227 << 10;
  for (size_t i = 0; i < 3; ++i) {
    if (launch.grid[i] < 1 || launch.grid[i] > kMostBlocks[i])
      return llvm::formatv("dimension {0} of the grid is {1}; allowed: 1 to {2}", i, launch.grid[i], kMostBlocks[i]);
    if (launch.block[i] < 1 || launch.block[i] > kMostThreads[i])
      return llvm::formatv("dimension {0} of the block is {1}; allowed: 1 to {2}", i, launch.block[i], kMostThreads[i]);
  }
  if (int64_t threads = launch.block[0] * launch.block[1] * launch.block[2]; threads > kMostThreads[0])
    return llvm::formatv("a block has {0} threads; allowed: 1 to {1}", threads, kMostThreads[0]);
  if (launch.sharedBytes < 0 || launch.sharedBytes > kMostShared)
    return llvm::formatv("a block has {0} bytes of shared memory; allowed: 0 to {1}", launch.sharedBytes, kMostShared);
  return "";
}

std::optional<LaunchSpec> LaunchReader::read() {
  LaunchSpec launch;
  if (!error.empty())
    return std::nullopt;
  launch.function = readName();
  if (launch.function.empty()) {
    fail("it does not begin with the name of a kernel");
    return std::nullopt;
  }
  if (!expect("<<<") || !readSizes(launch.grid, "a size of the grid") || !expect(",") ||
      !readSizes(launch.block, "a size of the block") ||
      (consume(",") && !readInteger(launch.sharedBytes, "the size of shared memory")) || !expect(">>>") ||
      !expect("(") || !readParameters(launch.parameters))
    return std::nullopt;
  rest = rest.ltrim();
  if (rest.empty())
    error = findLaunchProblem(launch);
  else
    fail("it ends " + here());
  return error.empty() ? std::optional(std::move(launch)) : std::nullopt;
}

std::optional<LaunchSpec> spmd::aten::readLaunch(StringRef text, const LaunchScope &scope, std::string &error) {
  if (scope.names.size() != scope.arguments.size()) {
    error = llvm::formatv("there are {0} names for {1} arguments", scope.names.size(), scope.arguments.size());
    return std::nullopt;
  }
  return LaunchReader(text, scope, error).read();
}

std::optional<UserCubin> UserCubin::parse(StringRef text) {
  UserCubin cubin;
  std::tie(cubin.chip, text) = text.split(' ');
  std::tie(cubin.hash, cubin.file) = text.split(' ');
  if (cubin.chip.empty() || cubin.hash.empty() || cubin.file.empty())
    return std::nullopt;
  return cubin;
}
