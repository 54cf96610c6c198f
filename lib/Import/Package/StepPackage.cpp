//===- StepPackage.cpp - Reading step.json --------------------------------===//

#include "StepPackage.h"
#include "../Iterations/Repeats.h"
#include "spmd/Runtime/Core/Externals.h"
#include "spmd/Runtime/Core/Hash.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

using namespace spmd;
using namespace spmd::step;
using runtime::JsonValue;

/// The newest; every older one is read too.
static constexpr int64_t kVersion = 9;

std::string step::formatSpec(const TensorSpec &spec) {
  return std::string(runtime::nameOf(spec.dtype)) + " " + runtime::formatShape(spec.shape);
}

const Arg *Node::findArg(const std::string &wanted) const {
  for (const Arg &arg : args)
    if (arg.name == wanted)
      return &arg;
  return nullptr;
}

static TensorSpec readSpec(JsonValue json) { return {json["shape"].asSizes(), json["dtype"].asDType()}; }

/// A float, or "inf", "-inf" or "nan", which JSON cannot say.
static double readReal(JsonValue json) {
  if (json.kind() != JsonValue::Kind::String)
    return json.asDouble();
  std::string text = json.asString();
  if (text == "inf")
    return std::numeric_limits<double>::infinity();
  if (text == "-inf")
    return -std::numeric_limits<double>::infinity();
  if (text != "nan")
    json.fail("expected a number, \"inf\", \"-inf\" or \"nan\", found \"" + text + "\"");
  return std::nan("");
}

static Option readOption(JsonValue json) {
  Option option;
  switch (json.kind()) {
  case JsonValue::Kind::Null:
    break;
  case JsonValue::Kind::Bool:
    option.kind = Option::Kind::boolean;
    option.boolean = json.asBool();
    break;
  case JsonValue::Kind::Integer:
    option.kind = Option::Kind::integer;
    option.integer = json.asInt();
    break;
  case JsonValue::Kind::Real:
    option.kind = Option::Kind::real;
    option.real = json.asDouble();
    break;
  case JsonValue::Kind::String:
    option.kind = Option::Kind::string;
    option.string = json.asString();
    break;
  case JsonValue::Kind::Array:
    option.kind = Option::Kind::list;
    json.forEach([&](JsonValue item) { option.list.push_back(readOption(item)); });
    break;
  case JsonValue::Kind::Object:
    json.fail("expected a value or a list, found an object");
    break;
  }
  return option;
}

static Input readInput(JsonValue json) {
  Input input;
  input.pointer = json.location();
  input.id = json["id"].asSize();
  input.spec = readSpec(json);
  std::string kind = json["kind"].asString();
  if (kind == "param") {
    input.kind = InputKind::param;
  } else if (kind == "buffer") {
    input.kind = InputKind::buffer;
  } else if (kind == "constant") {
    input.kind = InputKind::constant;
  } else if (kind == "state") {
    input.kind = InputKind::state;
    input.of = json["of"].asString();
    if (json.has("init"))
      input.number = readReal(json["init"]);
  } else if (kind == "hyper") {
    input.kind = InputKind::hyper;
    input.group = json["group"].asSize();
    if (json.has("value"))
      input.number = readReal(json["value"]);
  } else if (kind == "rng") {
    input.kind = InputKind::rng;
    input.integer = json["value"].asSize();
    if (input.spec.dtype != runtime::DType::I64 || !input.spec.shape.empty())
      json.fail("expected an i64 scalar, found " + formatSpec(input.spec));
  } else if (kind == "batch") {
    input.kind = InputKind::batch;
    if (json.has("batch_dim"))
      input.batchDim = json["batch_dim"].asSize();
    if (input.batchDim >= static_cast<int64_t>(input.spec.shape.size()))
      json["batch_dim"].fail("no such dimension in shape " + runtime::formatShape(input.spec.shape));
  } else {
    json["kind"].fail("expected param, buffer, state, hyper, rng, batch or "
                      "constant, found \"" +
                      kind + "\"");
  }
  input.name = json[kind == "state" ? "state" : "name"].asString();
  return input;
}

namespace {
/// Reads nodes, checking that every id is defined once and before its use.
class NodeReader {
public:
  explicit NodeReader(Step &step) : step(step) {}

  void define(int64_t id, JsonValue where) {
    if (!known.insert(id).second)
      where.fail("value " + std::to_string(id) + " is defined twice");
  }
  int64_t use(JsonValue where) {
    int64_t id = where.asSize();
    if (!known.count(id))
      where.fail("value " + std::to_string(id) + " is used before it is defined");
    return id;
  }
  void read(JsonValue json);

private:
  Arg readArg(JsonValue json);

  Step &step;
  std::set<int64_t> known;
};
} // namespace

Arg NodeReader::readArg(JsonValue json) {
  using Kind = Arg::Kind;
  Arg arg;
  std::vector<JsonValue> pair;
  json.forEach([&](JsonValue item) { pair.push_back(item); });
  if (pair.size() != 2) {
    json.fail("expected a pair of name and value");
    return arg;
  }
  arg.name = pair[0].asString();
  JsonValue value = pair[1];
  if (value.has("value")) {
    arg.kind = Kind::value;
    arg.integer = use(value["value"]);
  } else if (value.has("values")) {
    arg.kind = Kind::values;
    value["values"].forEach([&](JsonValue item) { arg.integers.push_back(item.isNull() ? -1 : use(item)); });
  } else if (value.has("int")) {
    arg.kind = Kind::integer;
    arg.integer = value["int"].asInt();
  } else if (value.has("float")) {
    arg.kind = Kind::real;
    arg.real = readReal(value["float"]);
  } else if (value.has("bool")) {
    arg.kind = Kind::boolean;
    arg.boolean = value["bool"].asBool();
  } else if (value.has("ints")) {
    arg.kind = Kind::integers;
    arg.integers = value["ints"].asInts();
  } else if (value.has("floats")) {
    arg.kind = Kind::reals;
    value["floats"].forEach([&](JsonValue item) { arg.reals.push_back(readReal(item)); });
  } else if (value.has("bools")) {
    arg.kind = Kind::booleans;
    value["bools"].forEach([&](JsonValue item) { arg.booleans.push_back(item.asBool()); });
  } else if (value.has("str")) {
    arg.kind = Kind::string;
    arg.string = value["str"].asString();
  } else if (value.has("dtype")) {
    arg.kind = Kind::dtype;
    arg.dtype = value["dtype"].asDType();
  } else if (value.has("memory_format")) {
    arg.kind = Kind::memoryFormat;
    arg.string = value["memory_format"].asString();
  } else {
    // {"none": null}: the member is there, and null.
    (void)value["none"];
  }
  return arg;
}

void NodeReader::read(JsonValue json) {
  Node node;
  node.pointer = json.location();
  node.op = json["op"].asString();
  node.phase = json["phase"].asString();
  if (node.phase != "forward" && node.phase != "backward" && node.phase != "optimizer")
    json["phase"].fail("expected forward, backward or optimizer, found \"" + node.phase + "\"");
  if (json.has("module"))
    node.module = json["module"].asString();
  if (json.has("stack")) {
    node.stack = json["stack"].asSize();
    if (*node.stack >= static_cast<int64_t>(step.stacks.size()))
      json["stack"].fail("there are " + std::to_string(step.stacks.size()) + " stacks");
  }
  json["args"].forEach([&](JsonValue item) { node.args.push_back(readArg(item)); });
  json["results"].forEach([&](JsonValue item) {
    if (item.isNull())
      return node.results.push_back(std::nullopt);
    node.results.push_back(Result{item["id"].asSize(), readSpec(item)});
    define(node.results.back()->id, item);
  });
  auto checkArg = [&](const std::string &name, JsonValue where) {
    const Arg *arg = node.findArg(name);
    if (!arg || (arg->kind != Arg::Kind::value && arg->kind != Arg::Kind::values))
      where.fail("no tensor argument \"" + name + "\"");
  };
  if (json.has("mutates")) {
    node.mutates = json["mutates"].asStrings();
    for (const std::string &name : node.mutates)
      checkArg(name, json["mutates"]);
  }
  if (json.has("view_of")) {
    node.viewOf = json["view_of"].asString();
    checkArg(node.viewOf, json["view_of"]);
    if (const Arg *arg = node.findArg(node.viewOf); arg && arg->kind == Arg::Kind::values)
      json["view_of"].fail("results are a view of one tensor, not of a list");
  }
  step.nodes.push_back(std::move(node));
}

static void readModel(JsonValue root, Step &step) {
  root["module_tree"].forEach([&](JsonValue json) {
    step.moduleTree.push_back({json["name"].asString(), json["class"].asString(), json["bases"].asStrings(),
                               json["parameters"].asStrings(), json["buffers"].asStrings(),
                               json["children"].asStrings()});
  });
  root["parameters"].forEach([&](JsonValue json) {
    step.parameters.push_back(
        {json["name"].asString(), json["aliases"].asStrings(), readSpec(json), json["trainable"].asBool()});
  });
  root["buffers"].forEach([&](JsonValue json) {
    step.buffers.push_back(
        {json["name"].asString(), json["aliases"].asStrings(), readSpec(json), json["persistent"].asBool()});
  });
  step.optimizer = root["optimizer"]["class"].asString();
  root["optimizer"]["groups"].forEach([&](JsonValue json) {
    ParamGroup group{json["parameters"].asStrings(), {}};
    json["options"].forEachMember(
        [&](const std::string &key, JsonValue item) { group.options.emplace_back(key, readOption(item)); });
    step.groups.push_back(std::move(group));
  });
  if (root.has("zero_gradient"))
    step.zeroGradient = root["zero_gradient"].asStrings();
  if (root.has("units"))
    step.units = units::readAnnotations(root["units"]);
  if (root.has("precision")) {
    step.precision = units::readPrecision(root["precision"]["options"]);
    step.exemptClasses = root["precision"]["exempt_classes"].asStrings();
  }
}

/// The hash of a library of the package in `folder`. A first step has those of the package that it is in.
static runtime::Expected<std::string> hashLibrary(const std::filesystem::path &folder, const std::string &name) {
  std::filesystem::path file = folder / runtime::kLibraryFolder / name;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    file = folder / ".." / runtime::kLibraryFolder / name;
  runtime::Expected<std::string> bytes = runtime::readFile(file.string());
  if (!bytes)
    return bytes.error();
  return runtime::formatHash(runtime::hashBytes(*bytes));
}

/// The file that `json` names; `hashes` are those of files that were read before.
static LibraryFile readLibrary(JsonValue json, const std::string &folder, std::map<std::string, std::string> &hashes) {
  LibraryFile file{json.asString(), ""};
  if (file.name.empty() || file.name.find_first_of("/\n") != std::string::npos) {
    json.fail("expected the name of a file in the package's folder libraries, found \"" + file.name + "\"");
    return file;
  }
  auto [known, isNew] = hashes.try_emplace(file.name);
  if (isNew) {
    runtime::Expected<std::string> hash = hashLibrary(folder, file.name);
    if (hash)
      known->second = *hash;
    else
      json.fail(hash.error().message);
  }
  file.hash = known->second;
  return file;
}

/// Operators whose functions and kernels are in files of the package in `folder`.
static void readOperators(JsonValue root, const std::string &folder, Step &step) {
  std::map<std::string, std::string> hashes;
  root["operators"].forEach([&](JsonValue json) {
    Operator entry;
    entry.op = json["op"].asString();
    entry.sharding = json["sharding"].asString();
    entry.reduce = json["reduce"].asStrings();
    if (json.has("library")) {
      entry.library = readLibrary(json["library"], folder, hashes);
      entry.symbol = json["symbol"].asString();
    }
    if (json.has("cubins")) {
      entry.launch = json["launch"].asString();
      json["cubins"].forEach([&](JsonValue cubin) {
        entry.cubins.emplace_back(cubin["chip"].asString(), readLibrary(cubin["file"], folder, hashes));
      });
    }
    if (!entry.library && entry.cubins.empty())
      json.fail("expected a \"library\" or \"cubins\"");
    step.operators.push_back(std::move(entry));
  });
}

/// A parameter or buffer input is one of the declared ones, and looks the same.
static void checkDeclared(const Input &input, const Step &step, JsonValue json) {
  auto check = [&](const auto &declared, const char *what) {
    for (const auto &entry : declared) {
      if (entry.name != input.name)
        continue;
      if (!(entry.spec == input.spec))
        json.fail(std::string(what) + " \"" + input.name + "\" is " + formatSpec(entry.spec) + ", the input is " +
                  formatSpec(input.spec));
      return;
    }
    json.fail(std::string("no ") + what + " \"" + input.name + "\" is declared");
  };
  if (input.kind == InputKind::param)
    check(step.parameters, "parameter");
  else if (input.kind == InputKind::buffer)
    check(step.buffers, "buffer");
}

/// What no two inputs of a step can both be; empty where any number may be alike.
static std::string identityOf(const Input &input) {
  switch (input.kind) {
  case InputKind::param:
    return "parameter \"" + input.name + "\"";
  case InputKind::buffer:
    return "buffer \"" + input.name + "\"";
  case InputKind::state:
    return "\"" + input.name + "\" of \"" + input.of + "\"";
  default:
    return "";
  }
}

/// What was given instead of a captured step; else the error of the file that is missing.
static runtime::Status explain(const std::string &path, const runtime::Status &error) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (std::filesystem::exists(folder / "manifest.json", ignored))
    return runtime::Status::badInput("'" + folder.string() +
                                     "' is an artifact, which spmd-run trains; spmd-compile makes one of a "
                                     "captured step");
  return error;
}

/// Text of MLIR with ops of that dialect, or what jax.export writes, which is MLIR's bytecode.
static bool isStableHlo(const std::string &text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] == '{')
    return false;
  return text.rfind("ML\xefR", 0) == 0 || text.find("stablehlo.") != std::string::npos;
}

runtime::Expected<Step> step::readStep(const std::string &path) {
  runtime::Expected<std::string> text = runtime::readFile(path);
  if (!text)
    return explain(path, text.error());
  if (text->rfind("PK", 0) == 0) // a zip archive
    return runtime::Status::badInput(
        "'" + path + "' is " +
        (std::filesystem::path(path).extension() == ".pt2"
             ? "a model of torch.export, which has neither loss nor optimizer; python -m spmd.capture " + path +
                   " --loss=logits:cross_entropy --optimizer=AdamW,lr=1e-3 -o NAME.step makes a step of it"
             : "a file of torch.save or torch.export, and no captured step; spmd.capture(train_step, model, optimizer, "
               "...).save(\"NAME.step\") captures forward, backward and optimizer"));
  if (isStableHlo(*text))
    return runtime::Status::badInput(
        "'" + path + "' is StableHLO, which does not say which arguments are parameters; spmd-translate "
                     "--import-stablehlo " +
        path + " --roles=ROLES.json -o NAME.step makes a step of it (docs/stablehlo.md)");
  runtime::JsonDocument document(path, *text);
  if (!document.status().ok())
    return document.status();

  Step step;
  step.fileName = path;
  JsonValue root = document.root();
  if (std::string format = root["format"].asString(); format != "spmd-step")
    root["format"].fail("expected \"spmd-step\", found \"" + format + "\"");
  if (int64_t version = root["version"].asInt(); version < 1 || version > kVersion)
    root["version"].fail("expected version 1 to " + std::to_string(kVersion) + ", found " + std::to_string(version));
  if (!document.status().ok())
    return document.status();

  step.torch = root["torch"].asString();
  step.name = root["name"].asString();
  if (root.has("default_dtype")) {
    step.defaultDType = root["default_dtype"].asDType();
    if (step.defaultDType > runtime::DType::BF16)
      root["default_dtype"].fail("expected a floating dtype: f32, f64, f16 or bf16");
  }
  readModel(root, step);
  if (root.has("operators"))
    readOperators(root, std::filesystem::path(path).parent_path().string(), step);
  root["stacks"].forEach([&](JsonValue json) {
    std::vector<Frame> &stack = step.stacks.emplace_back();
    json.forEach([&](JsonValue frame) {
      stack.push_back({frame["file"].asString(), frame["function"].asString(), frame["line"].asSize()});
    });
  });

  NodeReader nodes(step);
  std::set<std::string> seen;
  root["inputs"].forEach([&](JsonValue json) {
    step.inputs.push_back(readInput(json));
    nodes.define(step.inputs.back().id, json);
    checkDeclared(step.inputs.back(), step, json);
    if (std::string identity = identityOf(step.inputs.back()); !identity.empty() && !seen.insert(identity).second)
      json.fail("a second input that is " + identity);
  });
  RepeatReader repeats(step, root);
  root["nodes"].forEach([&](JsonValue json) {
    nodes.read(json);
    repeats.nameIterations([&](int64_t id, JsonValue where) { nodes.define(id, where); });
  });
  if (document.status().ok())
    repeats.check();
  root["outputs"].forEach([&](JsonValue json) {
    std::string kind = json["kind"].asString();
    if (kind != "loss" && kind != "output")
      json["kind"].fail("expected loss or output, found \"" + kind + "\"");
    step.outputs.push_back({kind == "loss", json["path"].asString(), nodes.use(json["value"])});
  });
  step.resultTree = root["result_tree"].asString();
  if (root.has("dynamic_batch")) {
    JsonValue json = root["dynamic_batch"];
    step.dynamicBatch = DynamicBatchSize{json["rows"].asString(), json["size"].asSize()};
    auto isRows = [&](const Input &input) {
      return input.kind == InputKind::batch && input.name == step.dynamicBatch->rows && input.spec.shape.empty() &&
             input.spec.dtype == runtime::DType::I64 && input.batchDim < 0;
    };
    if (std::none_of(step.inputs.begin(), step.inputs.end(), isRows))
      json["rows"].fail("expected the name of a 0-dimensional i64 batch input without a batch_dim, found \"" +
                        step.dynamicBatch->rows + "\"");
  }
  if (!document.status().ok())
    return document.status();
  return step;
}
