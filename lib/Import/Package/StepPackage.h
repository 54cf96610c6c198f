//===- StepPackage.h - step.json in memory ----------------------*- C++ -*-===//
//
// What docs/step-format.md says, as plain data: read whole, checked for
// missing fields, types, and ids used before they are defined, and free of
// JSON from there on.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_IMPORT_PACKAGE_STEPPACKAGE_H
#define SPMD_LIB_IMPORT_PACKAGE_STEPPACKAGE_H

#include "spmd/Runtime/Core/Json.h"
#include "spmd/ShardUnits/Annotation.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spmd::step {

struct TensorSpec {
  std::vector<int64_t> shape;
  runtime::DType dtype = runtime::DType::F32;

  bool operator==(const TensorSpec &other) const { return shape == other.shape && dtype == other.dtype; }
};

/// "f32 [8, 128]"
std::string formatSpec(const TensorSpec &spec);

struct TreeModule {
  std::string name, className;
  std::vector<std::string> bases, parameters, buffers, children;
};

struct Parameter {
  std::string name;
  std::vector<std::string> aliases;
  TensorSpec spec;
  bool trainable = true;
};

struct Buffer {
  std::string name;
  std::vector<std::string> aliases;
  TensorSpec spec;
  bool persistent = true; ///< part of the state dict
};

/// A hyper-parameter as the optimizer had it: only what JSON can say.
struct Option {
  enum class Kind { none, boolean, integer, real, string, list };
  Kind kind = Kind::none;
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;
  std::string string;
  std::vector<Option> list;
};

struct ParamGroup {
  std::vector<std::string> parameters;
  std::vector<std::pair<std::string, Option>> options;
};

struct Frame {
  std::string file, function;
  int64_t line = 0;
};

enum class InputKind { param, buffer, state, hyper, rng, batch, constant };

struct Input {
  InputKind kind = InputKind::param;
  int64_t id = 0;
  TensorSpec spec;
  std::string name; ///< of a state, the state's name
  std::string of;
  std::optional<double> number; ///< init of a state, value of a hyper-parameter
  int64_t integer = 0;          ///< value of a seed or step counter
  int64_t group = 0;
  int64_t batchDim = -1;
  std::string pointer;
};

struct Arg {
  enum class Kind {
    none,
    value,
    values,
    integer,
    real,
    boolean,
    integers,
    reals,
    booleans,
    string,
    dtype,
    memoryFormat
  };
  std::string name;
  Kind kind = Kind::none;
  int64_t integer = 0; ///< also the id of a value
  double real = 0;
  bool boolean = false;
  std::string string;
  runtime::DType dtype = runtime::DType::F32;
  std::vector<int64_t> integers; ///< also the ids of values, -1 for none
  std::vector<double> reals;
  std::vector<bool> booleans;
};

struct Result {
  int64_t id = 0;
  TensorSpec spec;
};

struct Node {
  std::string op, phase;
  std::optional<std::string> module;
  std::optional<int64_t> stack;
  std::vector<Arg> args;
  std::vector<std::optional<Result>> results;
  std::vector<std::string> mutates;
  std::string viewOf; ///< empty: the results are no views
  std::string pointer;

  const Arg *findArg(const std::string &name) const;
};

/// A file in the package's folder of libraries.
struct LibraryFile {
  std::string name;
  std::string hash; ///< of its bytes; found when the package is read
};

/// An operator of the user's: on CPUs a function in a shared library, on GPUs a kernel in a cubin.
struct Operator {
  std::string op; ///< as nodes name it
  std::string sharding;
  std::vector<std::string> reduce;    ///< for each result; "" where nothing is reduced
  std::optional<LibraryFile> library; ///< none: it has no function
  std::string symbol;
  std::vector<std::pair<std::string, LibraryFile>> cubins; ///< by chip, in order
  std::string launch;                                      ///< dialects/Aten/AtenLaunch.h
};

struct Output {
  bool isLoss = false;
  std::string path;
  int64_t value = 0;
};

/// Nodes [begin, end) that are run `count` times; what differs between the iterations is said here.
struct Repeat {
  /// In iteration k `value`, which is of[0], is of[k].
  struct Fed {
    int64_t value = 0;
    std::vector<int64_t> of;
  };
  /// From the second iteration on `value` is what `next` was in the one before.
  struct Carried {
    int64_t value = 0, next = 0;
  };
  /// What the result `value` of iteration k is called behind the range: of[k].
  struct Each {
    int64_t value = 0;
    std::vector<int64_t> of;
  };
  int64_t begin = 0, end = 0, count = 0;
  /// How often an iteration draws random numbers: by so much the argument `stream` of its operators grows.
  int64_t streams = 0;
  std::vector<Fed> fed;
  std::vector<Carried> carried;
  std::vector<Each> each;
};

/// A step for batches of several sizes.
struct DynamicBatchSize {
  std::string rows; ///< the batch input that is the number of rows
  int64_t size = 0; ///< of this capture
};

struct Step {
  std::string fileName, torch, name, optimizer, resultTree;
  runtime::DType defaultDType = runtime::DType::F32; ///< torch's, at the capture
  std::vector<TreeModule> moduleTree;
  std::vector<Parameter> parameters;
  std::vector<Buffer> buffers;
  std::vector<ParamGroup> groups;
  std::vector<std::string> zeroGradient;
  std::vector<units::Annotation> units;
  /// Of units that say nothing else, and the classes of modules that have none.
  std::optional<units::Precision> precision;
  std::vector<std::string> exemptClasses;
  std::vector<std::vector<Frame>> stacks;
  std::vector<Input> inputs;
  std::vector<Node> nodes;
  std::vector<Repeat> repeats; ///< in program order
  std::vector<Output> outputs;
  std::vector<Operator> operators;
  std::optional<DynamicBatchSize> dynamicBatch;
};

/// Reads step.json.
runtime::Expected<Step> readStep(const std::string &path);

/// Compares the header of `path`/weights.safetensors with the step's inputs;
/// succeeds when the file is not there.
runtime::Status checkWeights(const Step &step, const std::string &folder);

} // namespace spmd::step

#endif // SPMD_LIB_IMPORT_PACKAGE_STEPPACKAGE_H
