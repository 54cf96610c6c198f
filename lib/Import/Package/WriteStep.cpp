//===- WriteStep.cpp - step.json from memory ------------------------------===//

#include "WriteStep.h"

#include "llvm/Support/JSON.h"

#include <cmath>

using namespace spmd;
using namespace spmd::step;
using llvm::json::OStream;

/// A float, or what JSON has no number for.
static void writeReal(OStream &json, double value) {
  if (std::isfinite(value))
    json.value(value);
  else
    json.value(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static void writeStrings(OStream &json, llvm::StringRef key, const std::vector<std::string> &values) {
  json.attributeArray(key, [&] {
    for (const std::string &value : values)
      json.value(value);
  });
}

static void writeSpec(OStream &json, const TensorSpec &spec) {
  json.attributeArray("shape", [&] {
    for (int64_t dim : spec.shape)
      json.value(dim);
  });
  json.attribute("dtype", runtime::nameOf(spec.dtype));
}

static void writeNull(OStream &json, llvm::StringRef key) { json.attribute(key, nullptr); }

static void writeOption(OStream &json, const Option &option) {
  switch (option.kind) {
  case Option::Kind::none:
    return json.value(nullptr);
  case Option::Kind::boolean:
    return json.value(option.boolean);
  case Option::Kind::integer:
    return json.value(option.integer);
  case Option::Kind::real:
    return writeReal(json, option.real);
  case Option::Kind::string:
    return json.value(option.string);
  case Option::Kind::list:
    return json.array([&] {
      for (const Option &item : option.list)
        writeOption(json, item);
    });
  }
}

static void writeInput(OStream &json, const Input &input) {
  static constexpr const char *kinds[] = {"param", "buffer", "state", "hyper", "rng", "batch", "constant"};
  auto number = [&](llvm::StringRef key) {
    if (!input.number)
      return writeNull(json, key);
    json.attributeBegin(key);
    writeReal(json, *input.number);
    json.attributeEnd();
  };
  json.attribute("id", input.id);
  json.attribute("kind", kinds[static_cast<int>(input.kind)]);
  json.attribute(input.kind == InputKind::state ? "state" : "name", input.name);
  if (input.kind == InputKind::state) {
    json.attribute("of", input.of);
    number("init");
  } else if (input.kind == InputKind::hyper) {
    json.attribute("group", input.group);
    number("value");
  } else if (input.kind == InputKind::rng) {
    json.attribute("value", input.integer);
  } else if (input.kind == InputKind::batch) {
    if (input.batchDim < 0)
      writeNull(json, "batch_dim");
    else
      json.attribute("batch_dim", input.batchDim);
  }
  writeSpec(json, input.spec);
}

static void writeArg(OStream &json, const Arg &arg) {
  using Kind = Arg::Kind;
  auto list = [&](llvm::StringRef key, const auto &values, auto write) {
    json.attributeArray(key, [&] {
      for (const auto &value : values)
        write(value);
    });
  };
  json.array([&] {
    json.value(arg.name);
    json.object([&] {
      switch (arg.kind) {
      case Kind::none:
        return writeNull(json, "none");
      case Kind::value:
        return json.attribute("value", arg.integer);
      case Kind::values:
        return list("values", arg.integers, [&](int64_t id) { id < 0 ? json.value(nullptr) : json.value(id); });
      case Kind::integer:
        return json.attribute("int", arg.integer);
      case Kind::real:
        json.attributeBegin("float");
        writeReal(json, arg.real);
        return json.attributeEnd();
      case Kind::boolean:
        return json.attribute("bool", arg.boolean);
      case Kind::integers:
        return list("ints", arg.integers, [&](int64_t value) { json.value(value); });
      case Kind::reals:
        return list("floats", arg.reals, [&](double value) { writeReal(json, value); });
      case Kind::booleans:
        return list("bools", arg.booleans, [&](bool value) { json.value(value); });
      case Kind::string:
        return json.attribute("str", arg.string);
      case Kind::dtype:
        return json.attribute("dtype", runtime::nameOf(arg.dtype));
      case Kind::memoryFormat:
        return json.attribute("memory_format", arg.string);
      }
    });
  });
}

static void writeNode(OStream &json, const Node &node) {
  json.attribute("op", node.op);
  json.attribute("phase", node.phase);
  node.module ? json.attribute("module", *node.module) : writeNull(json, "module");
  node.stack ? json.attribute("stack", *node.stack) : writeNull(json, "stack");
  json.attributeArray("args", [&] {
    for (const Arg &arg : node.args)
      writeArg(json, arg);
  });
  json.attributeArray("results", [&] {
    for (const std::optional<Result> &result : node.results) {
      if (!result) {
        json.value(nullptr);
        continue;
      }
      json.object([&] {
        json.attribute("id", result->id);
        writeSpec(json, result->spec);
      });
    }
  });
  if (!node.mutates.empty())
    writeStrings(json, "mutates", node.mutates);
  if (!node.viewOf.empty())
    json.attribute("view_of", node.viewOf);
}

static void writeModel(OStream &json, const Step &step) {
  auto objects = [&](llvm::StringRef key, const auto &entries, auto write) {
    json.attributeArray(key, [&] {
      for (const auto &entry : entries)
        json.object([&] { write(entry); });
    });
  };
  objects("module_tree", step.moduleTree, [&](const TreeModule &module) {
    json.attribute("name", module.name);
    json.attribute("class", module.className);
    writeStrings(json, "bases", module.bases);
    writeStrings(json, "parameters", module.parameters);
    writeStrings(json, "buffers", module.buffers);
    writeStrings(json, "children", module.children);
  });
  objects("parameters", step.parameters, [&](const Parameter &parameter) {
    json.attribute("name", parameter.name);
    writeStrings(json, "aliases", parameter.aliases);
    writeSpec(json, parameter.spec);
    json.attribute("trainable", parameter.trainable);
  });
  objects("buffers", step.buffers, [&](const Buffer &buffer) {
    json.attribute("name", buffer.name);
    writeStrings(json, "aliases", buffer.aliases);
    writeSpec(json, buffer.spec);
    json.attribute("persistent", buffer.persistent);
  });
  json.attributeObject("optimizer", [&] {
    json.attribute("class", step.optimizer);
    objects("groups", step.groups, [&](const ParamGroup &group) {
      writeStrings(json, "parameters", group.parameters);
      json.attributeObject("options", [&] {
        for (const auto &[name, option] : group.options) {
          json.attributeBegin(name);
          writeOption(json, option);
          json.attributeEnd();
        }
      });
    });
  });
  writeStrings(json, "zero_gradient", step.zeroGradient);
  json.attributeArray("stacks", [&] {
    for (const std::vector<Frame> &stack : step.stacks)
      json.array([&] {
        for (const Frame &frame : stack)
          json.object([&] {
            json.attribute("file", frame.file);
            json.attribute("line", frame.line);
            json.attribute("function", frame.function);
          });
      });
  });
  objects("inputs", step.inputs, [&](const Input &input) { writeInput(json, input); });
  objects("nodes", step.nodes, [&](const Node &node) { writeNode(json, node); });
  objects("outputs", step.outputs, [&](const Output &output) {
    json.attribute("kind", output.isLoss ? "loss" : "output");
    json.attribute("path", output.path);
    json.attribute("value", output.value);
  });
  json.attribute("result_tree", step.resultTree);
}

void step::writeStep(const Step &step, llvm::raw_ostream &os) {
  OStream json(os, /*IndentSize=*/0);
  json.object([&] {
    json.attribute("format", "spmd-step");
    json.attribute("version", 1);
    json.attribute("torch", step.torch);
    json.attribute("name", step.name);
    writeModel(json, step);
  });
  os << '\n';
}
