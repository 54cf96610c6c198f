//===- PlanReader.cpp - The JSON form of a plan ---------------------------===//

#include "CommandFields.h"
#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Plan.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>

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
  // The members of one kind of command, and its references.
  void read(JsonValue value, KernelCommand &kernel, std::vector<Ref> &refs);
  void read(JsonValue value, AttentionCommand &attention, std::vector<Ref> &refs);
  void read(JsonValue value, GemmCommand &gemm, std::vector<Ref> &refs);
  void read(JsonValue value, CollectiveCommand &collective, std::vector<Ref> &refs);
  void read(JsonValue value, WaitCommand &wait, std::vector<Ref> &refs);
  void read(JsonValue value, CopyCommand &copy, std::vector<Ref> &refs);
  void read(JsonValue value, FillCommand &fill, std::vector<Ref> &refs);
  void read(JsonValue value, CheckIndexCommand &check, std::vector<Ref> &refs);
  void readLaunch(JsonValue value, KernelCommand &kernel);
  void readEpilogue(JsonValue value, GemmShape &shape, std::vector<Ref> &refs);
  Ref readRef(JsonValue value);
  /// A reference whose access is given by the command, not by the file.
  Ref readRef(JsonValue value, Access access);
  std::vector<Ref> readRefs(JsonValue value);
  int32_t readName(JsonValue value, const std::vector<std::string> &names, const char *what);

  Plan &plan;
};
} // namespace

int32_t PlanReader::readName(JsonValue value, const std::vector<std::string> &names, const char *what) {
  std::string name = value.asString();
  auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    value.fail("no " + std::string(what) + " is named '" + name + "'; there are: " + joinNames(names));
    return 0;
  }
  return static_cast<int32_t>(found - names.begin());
}

Ref PlanReader::readRef(JsonValue value) { return readRef(value, readAccess(value["access"])); }

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
  if (value.has("align"))
    buffer.alignment = value["align"].asSize();
  if (buffer.alignment < 1)
    value["align"].fail("expected at least 1");
  buffer.state = value["state"].asBool();
  if (value.has("loc"))
    buffer.location = value["loc"].asString();
  plan.buffers.push_back(std::move(buffer));
}

void PlanReader::readLaunch(JsonValue value, KernelCommand &kernel) {
  kernel.symbol = value["kernel"].asString();
  kernel.parallel = value["parallel"].asSize();
  kernel.grain = value["grain"].asSize();
  if (kernel.grain < 1)
    value["grain"].fail("expected at least 1");
}

void PlanReader::read(JsonValue value, KernelCommand &kernel, std::vector<Ref> &refs) {
  readLaunch(value, kernel);
  refs = readRefs(value["args"]);
}

void PlanReader::read(JsonValue value, AttentionCommand &attention, std::vector<Ref> &refs) {
  readLaunch(value, attention);
  AttentionShape &shape = attention.shape;
  readAttentionShape(value, shape);
  auto add = [&](JsonValue entry, Access access) { refs.push_back(readRef(entry, access)); };
  if (shape.isBackward)
    add(value["dout"], Access::Read);
  for (const char *operand : {"q", "k", "v"})
    add(value[operand], Access::Read);
  if (value.has("mask_inputs"))
    value["mask_inputs"].forEach([&](JsonValue entry) {
      add(entry, Access::Read);
      ++attention.maskInputs;
    });
  if (attention.maskInputs && shape.mask == AttentionMask::None)
    value["mask_inputs"].fail("there is no mask");
  for (const char *result : {"out", "lse"})
    add(value[result], shape.isBackward ? Access::Read : Access::Write);
  if (shape.isBackward) {
    value["gradients"].forEach([&](JsonValue entry) {
      add(entry, Access::Write);
      ++attention.gradients;
    });
    if (attention.gradients != 1 && attention.gradients != 3)
      value["gradients"].fail("expected 1 or 3, found " + std::to_string(attention.gradients));
    attention.hasMaskGradient = value.has("mask_gradient");
  }
  if (attention.hasMaskGradient) {
    add(value["mask_gradient"], Access::Write);
    if (shape.mask != AttentionMask::Added)
      value["mask_gradient"].fail("there is no mask that is added");
  }
  if (value.has("library_plan")) {
    JsonValue plan = value["library_plan"];
    attention.libraryPlan = LibraryPlan{plan["library"].asString(), plan["plan"].asString()};
  }
}

void PlanReader::read(JsonValue value, GemmCommand &gemm, std::vector<Ref> &refs) {
  GemmShape &shape = gemm.shape;
  readGemmSizes(value, shape);
  shape.beta = value["beta"].asDouble();
  if (shape.beta != 0 && shape.beta != 1)
    value["beta"].fail("expected 0 or 1, found " + std::to_string(shape.beta));
  gemm.dtype = readGemmDType(value["dtype"]);
  refs = {readRef(value["a"], Access::Read), readRef(value["b"], Access::Read),
          readRef(value["c"], shape.beta != 0 ? Access::ReadWrite : Access::Write)};
  readEpilogue(value, shape, refs);
}

void PlanReader::readEpilogue(JsonValue value, GemmShape &shape, std::vector<Ref> &refs) {
  auto readPart = [&](const char *key, Access access) -> int32_t {
    if (!value.has(key))
      return -1;
    refs.push_back(readRef(value[key], access));
    return static_cast<int32_t>(refs.size()) - 1;
  };
  shape.activation = readActivation(value);
  bool isGradient = shape.readsPreActivation();
  shape.bias = readPart("bias", Access::Read);
  shape.residual = readPart("residual", Access::Read);
  shape.preActivation = readPart("pre_activation", isGradient ? Access::Read : Access::Write);
  shape.biasGradient = readPart("bias_gradient", Access::Write);
  shape.workspace = readPart("workspace", Access::Write);
  shape.biasGradientOf = readBiasGradientOf(value);
  if (shape.preActivation >= 0 && shape.activation == Activation::None)
    value["pre_activation"].fail("there is no activation");
  if (isGradient && shape.preActivation < 0)
    value.fail("expected pre_activation, where the gradient of the activation is taken");
  if (isGradient && (shape.bias >= 0 || shape.residual >= 0 || shape.beta != 0))
    value["activation"].fail("is without bias, residual and beta");
  if (shape.residual >= 0 && shape.beta != 0)
    value["residual"].fail("beta is 1: c is added already");
  if ((shape.biasGradient >= 0) != (shape.biasGradientOf != GemmOperand::None))
    value.fail("expected bias_gradient and bias_gradient_of, or neither");
  bool isPlain = shape.bias < 0 && shape.activation == Activation::None;
  if (shape.biasGradient >= 0 &&
      (shape.batch != 1 || (shape.biasGradientOf == GemmOperand::C ? !isGradient : !isPlain)))
    value["bias_gradient"].fail(
        "is for one GEMM, of a and b without bias and activation, of c with gelu_tanh_backward");
}

void PlanReader::read(JsonValue value, CollectiveCommand &collective, std::vector<Ref> &refs) {
  collective.communicator = readName(value["comm"], plan.communicators, "communicator");
  readExchange(value, collective);
  if (!isInPlace(collective.kind)) {
    refs = {readRef(value["send"], Access::Read), readRef(value["recv"], Access::Write)};
    return;
  }
  value["buffers"].forEach([&](JsonValue entry) { refs.push_back(readRef(entry, Access::ReadWrite)); });
  if (collective.counts.size() != refs.size())
    value["counts"].fail("expected one per buffer");
  if (collective.kinds.size() != refs.size())
    value["kinds"].fail("expected one per buffer");
}

void PlanReader::read(JsonValue value, WaitCommand &wait, std::vector<Ref> &) {
  wait.awaited = static_cast<int32_t>(std::min<int64_t>(value["for"].asSize(), INT32_MAX));
}

void PlanReader::read(JsonValue value, CopyCommand &copy, std::vector<Ref> &refs) {
  copy.bytes = value["bytes"].asSize();
  refs = {readRef(value["src"], Access::Read), readRef(value["dst"], Access::Write)};
}

void PlanReader::read(JsonValue value, FillCommand &fill, std::vector<Ref> &refs) {
  fill.bytes = value["bytes"].asSize();
  int64_t byte = value["value"].asSize();
  if (byte > UINT8_MAX)
    value["value"].fail("expected a byte, found " + std::to_string(byte));
  fill.value = static_cast<uint8_t>(byte);
  refs = {readRef(value["dst"], Access::Write)};
}

void PlanReader::read(JsonValue value, CheckIndexCommand &check, std::vector<Ref> &refs) {
  readCheckIndex(value, check);
  refs = {readRef(value["ids"], Access::Read)};
}

/// Each kind of command, empty.
static std::vector<Command::Action> listKinds() {
  AttentionCommand backward;
  backward.shape.isBackward = true;
  std::vector<Command::Action> kinds = {KernelCommand(), AttentionCommand(), backward,      GemmCommand(),
                                        WaitCommand(),   CopyCommand(),      FillCommand(), CheckIndexCommand()};
  for (CollectiveKind kind : kCollectiveKinds) {
    CollectiveCommand collective;
    collective.kind = kind;
    kinds.push_back(collective);
  }
  return kinds;
}

void PlanReader::readCommand(JsonValue value) {
  static const std::vector<Command::Action> kinds = listKinds();
  std::string op = value["op"].asString();
  auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto &kind) { return op == nameOf(kind); });
  if (found == kinds.end())
    return value["op"].fail("unknown command '" + op + "'");
  Command command;
  command.action = *found;
  command.stream = readName(value["stream"], plan.streams, "stream");
  if (value.has("loc"))
    command.location = value["loc"].asString();
  std::visit([&](auto &action) { read(value, action, command.refs); }, command.action);
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
  auto readNumbers = [&](const char *key, const char *what, const std::vector<std::string> &known,
                         std::map<std::string, int64_t> &numbers) {
    if (root.has(key))
      root[key].forEachMember([&](const std::string &name, JsonValue value) {
        if (std::find(known.begin(), known.end(), name) == known.end())
          value.fail(std::string("no ") + what + " is named '" + name + "'");
        numbers[name] = value.asSize();
        if (numbers[name] == 0)
          value.fail("expected at least 1");
      });
  };
  readNumbers("priorities", "stream", plan.streams, plan.priorities);
  readNumbers("max_blocks", "communicator", plan.communicators, plan.maxBlocks);
  root["buffers"].forEach([&](JsonValue value) { readBuffer(value); });
  root["commands"].forEach([&](JsonValue value) { readCommand(value); });
}

Expected<PlanFile> spmd::runtime::parsePlanFile(const std::string &name, std::string_view text) {
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
  PlanFile file;
  PlanReader(file.plan).read(root);
  file.repeats = readRepeats(root);
  if (!document.status().ok())
    return document.status();
  return file;
}

Expected<Plan> spmd::runtime::parsePlan(const std::string &name, std::string_view text) {
  Expected<PlanFile> file = parsePlanFile(name, text);
  if (!file)
    return file.error();
  Expected<Plan> plan = unroll(std::move(*file));
  if (!plan)
    return Status::badInput(name + ": /" + plan.error().message);
  return plan;
}
