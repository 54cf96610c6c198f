//===- PlanReader.cpp - The JSON form of a plan ---------------------------===//

#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Plan.h"

#include <algorithm>
#include <map>

using namespace spmd::runtime;

namespace {
/// Reads one plan; holds what commands refer to by name or number.
class PlanReader {
public:
  explicit PlanReader(Plan &plan) : plan(plan) {}

  void read(JsonValue root);

private:
  void readBuffer(JsonValue value);
  void readCommand(JsonValue value);
  void readGemm(JsonValue value, Command &command);
  void readEpilogue(JsonValue value, Command &command);
  void readCollective(JsonValue value, Command &command);
  Ref readRef(JsonValue value);
  /// A reference whose access is given by the command, not by the file.
  Ref readRef(JsonValue value, Access access);
  std::vector<Ref> readRefs(JsonValue value);
  int32_t readName(JsonValue value, const std::vector<std::string> &names, const char *what);

  Plan &plan;
};
} // namespace

static std::string joinNames(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

int32_t PlanReader::readName(JsonValue value, const std::vector<std::string> &names, const char *what) {
  std::string name = value.asString();
  auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    value.fail("no " + std::string(what) + " is named '" + name + "'; there are: " + joinNames(names));
    return 0;
  }
  return static_cast<int32_t>(found - names.begin());
}

Ref PlanReader::readRef(JsonValue value) {
  std::string access = value["access"].asString();
  if (access != "r" && access != "w" && access != "rw")
    value["access"].fail("expected r, w or rw, found '" + access + "'");
  return readRef(value, access == "r" ? Access::Read : access == "w" ? Access::Write : Access::ReadWrite);
}

Ref PlanReader::readRef(JsonValue value, Access access) {
  Ref ref;
  int64_t buffer = value["buffer"].asSize();
  if (buffer >= static_cast<int64_t>(plan.buffers.size()))
    value["buffer"].fail("there are " + std::to_string(plan.buffers.size()) + " buffers, none has number " +
                         std::to_string(buffer));
  ref.buffer = static_cast<int32_t>(buffer);
  ref.offset = value["offset"].asInt();
  if (value.has("coord"))
    ref.coord = value["coord"].asInts();
  ref.bytes = value["bytes"].asSize();
  ref.access = access;
  return ref;
}

std::vector<Ref> PlanReader::readRefs(JsonValue value) {
  std::vector<Ref> refs;
  value.forEach([&](JsonValue entry) { refs.push_back(readRef(entry)); });
  return refs;
}

void PlanReader::readBuffer(JsonValue value) {
  Buffer buffer;
  int64_t id = value["id"].asSize();
  if (id != static_cast<int64_t>(plan.buffers.size()))
    value["id"].fail("expected the position " + std::to_string(plan.buffers.size()) + ", found " + std::to_string(id));
  buffer.id = static_cast<int32_t>(id);
  buffer.name = value["name"].asString();
  buffer.memoryClass = value["class"].asString();
  buffer.offset = value["offset"].asSize();
  buffer.bytes = value["bytes"].asSize();
  buffer.state = value["state"].asBool();
  if (value.has("loc"))
    buffer.location = value["loc"].asString();
  plan.buffers.push_back(std::move(buffer));
}

void PlanReader::readGemm(JsonValue value, Command &command) {
  GemmShape &gemm = command.gemm;
  gemm.m = value["m"].asSize();
  gemm.n = value["n"].asSize();
  gemm.k = value["k"].asSize();
  if (gemm.k == 0)
    value["k"].fail("expected at least 1, found 0");
  gemm.lda = value["lda"].asSize();
  gemm.ldb = value["ldb"].asSize();
  gemm.ldc = value["ldc"].asSize();
  gemm.transA = value["trans_a"].asBool();
  gemm.transB = value["trans_b"].asBool();
  gemm.beta = value["beta"].asDouble();
  if (gemm.beta != 0 && gemm.beta != 1)
    value["beta"].fail("expected 0 or 1, found " + std::to_string(gemm.beta));
  if (value.has("batch"))
    gemm.batch = value["batch"].asSize();
  if (value.has("stride_a"))
    gemm.strideA = value["stride_a"].asSize();
  if (value.has("stride_b"))
    gemm.strideB = value["stride_b"].asSize();
  if (value.has("stride_c"))
    gemm.strideC = value["stride_c"].asSize();
  command.dtype = value["dtype"].asDType();
  if (!isFloating(command.dtype))
    value["dtype"].fail(std::string("expected f32, f64, bf16 or f16, found ") + nameOf(command.dtype));
  command.refs = {readRef(value["a"], Access::Read), readRef(value["b"], Access::Read),
                  readRef(value["c"], gemm.beta != 0 ? Access::ReadWrite : Access::Write)};
  readEpilogue(value, command);
}

void PlanReader::readEpilogue(JsonValue value, Command &command) {
  GemmShape &gemm = command.gemm;
  auto readPart = [&](const char *key, Access access) -> int32_t {
    if (!value.has(key))
      return -1;
    command.refs.push_back(readRef(value[key], access));
    return static_cast<int32_t>(command.refs.size()) - 1;
  };
  gemm.bias = readPart("bias", Access::Read);
  gemm.residual = readPart("residual", Access::Read);
  gemm.preActivation = readPart("pre_activation", Access::Write);
  if (value.has("activation")) {
    std::string text = value["activation"].asString();
    gemm.activation = parseActivation(text).value_or(Activation::None);
    if (gemm.activation == Activation::None)
      value["activation"].fail("expected relu, gelu or gelu_tanh, found '" + text + "'");
  }
  if (gemm.preActivation >= 0 && gemm.activation == Activation::None)
    value["pre_activation"].fail("there is no activation");
  if (gemm.residual >= 0 && gemm.beta != 0)
    value["residual"].fail("beta is 1: c is added already");
}

static ReductionKind readKind(JsonValue value) {
  std::string text = value.asString();
  if (std::optional<ReductionKind> kind = parseReductionKind(text))
    return *kind;
  value.fail("expected sum, max, min or norm2, found '" + text + "'");
  return ReductionKind::Sum;
}

void PlanReader::readCollective(JsonValue value, Command &command) {
  command.communicator = readName(value["comm"], plan.communicators, "communicator");
  command.dtype = value["dtype"].asDType();
  if (value.has("unit"))
    command.unit = value["unit"].asString();
  if (command.kind == CommandKind::AllReduce) {
    value["buffers"].forEach([&](JsonValue entry) { command.refs.push_back(readRef(entry, Access::ReadWrite)); });
    command.counts = value["counts"].asSizes();
    value["kinds"].forEach([&](JsonValue entry) { command.kinds.push_back(readKind(entry)); });
    if (command.counts.size() != command.refs.size())
      value["counts"].fail("expected one per buffer");
    if (command.kinds.size() != command.refs.size())
      value["kinds"].fail("expected one per buffer");
    return;
  }
  command.refs = {readRef(value["send"], Access::Read), readRef(value["recv"], Access::Write)};
  command.counts = {value["count"].asSize()};
  if (command.kind == CommandKind::ReduceScatter)
    command.kinds = {readKind(value["kind"])};
}

void PlanReader::readCommand(JsonValue value) {
  static const std::map<std::string, CommandKind> kinds = {{"kernel", CommandKind::Kernel},
                                                           {"gemm", CommandKind::Gemm},
                                                           {"all_gather", CommandKind::AllGather},
                                                           {"reduce_scatter", CommandKind::ReduceScatter},
                                                           {"all_reduce", CommandKind::AllReduce},
                                                           {"wait", CommandKind::Wait},
                                                           {"copy", CommandKind::Copy},
                                                           {"fill", CommandKind::Fill},
                                                           {"check_index", CommandKind::CheckIndex}};
  Command command;
  std::string op = value["op"].asString();
  auto found = kinds.find(op);
  if (found == kinds.end())
    return value["op"].fail("unknown command '" + op + "'");
  command.kind = found->second;
  command.stream = readName(value["stream"], plan.streams, "stream");
  if (value.has("loc"))
    command.location = value["loc"].asString();

  switch (command.kind) {
  case CommandKind::Kernel:
    command.kernel = value["kernel"].asString();
    command.parallel = value["parallel"].asSize();
    command.grain = value["grain"].asSize();
    if (command.grain < 1)
      value["grain"].fail("expected at least 1");
    command.refs = readRefs(value["args"]);
    break;
  case CommandKind::Gemm:
    readGemm(value, command);
    break;
  case CommandKind::AllGather:
  case CommandKind::ReduceScatter:
  case CommandKind::AllReduce:
    readCollective(value, command);
    break;
  case CommandKind::Wait:
    command.waitFor = static_cast<int32_t>(std::min<int64_t>(value["for"].asSize(), INT32_MAX));
    break;
  case CommandKind::Copy:
    command.bytes = value["bytes"].asSize();
    command.refs = {readRef(value["src"], Access::Read), readRef(value["dst"], Access::Write)};
    break;
  case CommandKind::Fill:
    command.bytes = value["bytes"].asSize();
    command.value = static_cast<int32_t>(value["value"].asSize());
    if (command.value > 255)
      value["value"].fail("expected a byte, found " + std::to_string(command.value));
    command.refs = {readRef(value["dst"], Access::Write)};
    break;
  case CommandKind::CheckIndex:
    command.dtype = value["dtype"].asDType();
    if (command.dtype == DType::F64 || command.dtype == DType::F32 || command.dtype == DType::F16 ||
        command.dtype == DType::BF16)
      value["dtype"].fail(std::string("expected integers, found ") + nameOf(command.dtype));
    command.counts = {value["count"].asSize()};
    command.low = value["low"].asInt();
    command.high = value["high"].asInt();
    if (value.has("ignore_index"))
      command.ignoreIndex = value["ignore_index"].asInt();
    command.use = value["use"].asString();
    command.refs = {readRef(value["ids"], Access::Read)};
    break;
  }
  plan.commands.push_back(std::move(command));
}

void PlanReader::read(JsonValue root) {
  plan.streams = root["streams"].asStrings();
  plan.communicators = root["communicators"].asStrings();
  if (root.has("axes"))
    root["axes"].forEachMember([&](const std::string &name, JsonValue axes) {
      if (std::find(plan.communicators.begin(), plan.communicators.end(), name) == plan.communicators.end())
        axes.fail("no communicator is named '" + name + "'");
      plan.axes[name] = axes.asStrings();
      if (plan.axes[name].empty())
        axes.fail("expected an axis; a communicator of all ranks has no entry");
    });
  root["buffers"].forEach([&](JsonValue value) { readBuffer(value); });
  root["commands"].forEach([&](JsonValue value) { readCommand(value); });
}

Expected<Plan> spmd::runtime::parsePlan(const std::string &name, std::string_view text) {
  JsonDocument document(name, text);
  JsonValue root = document.root();
  std::string format = root["format"].asString();
  if (format != "spmd-plan")
    root["format"].fail("expected 'spmd-plan', found '" + format + "'");
  int64_t version = root["version"].asInt();
  if (version != kPlanVersion)
    root["version"].fail("this runtime reads version " + std::to_string(kPlanVersion) + ", the plan has version " + std::to_string(version));
  if (!document.status().ok())
    return document.status();
  Plan plan;
  PlanReader(plan).read(root);
  if (!document.status().ok())
    return document.status();
  return plan;
}
