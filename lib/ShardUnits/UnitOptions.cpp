//===- UnitOptions.cpp - what can be chosen per shard unit ----------------===//

#include "spmd/ShardUnits/UnitOptions.h"

#include <charconv>
#include <sstream>

using namespace spmd;
using namespace spmd::units;
using runtime::DType;
using runtime::Expected;
using runtime::JsonValue;
using runtime::Status;

const char *units::nameOf(Mode mode) {
  switch (mode) {
  case Mode::fullyShard:
    return "fully_shard";
  case Mode::shardGradOp:
    return "shard_grad_op";
  case Mode::shardOptimizer:
    return "shard_optimizer";
  case Mode::hybrid:
    return "hybrid";
  case Mode::replicate:
    return "replicate";
  case Mode::byBudget:
    return "default";
  }
  return "";
}

std::optional<Mode> units::parseMode(const std::string &name) {
  for (Mode mode :
       {Mode::fullyShard, Mode::shardGradOp, Mode::shardOptimizer, Mode::hybrid, Mode::replicate, Mode::byBudget})
    if (name == nameOf(mode))
      return mode;
  return std::nullopt;
}

/// Of a precision, by its name; null for an unknown one.
static std::optional<DType> *findDType(Precision &precision, const std::string &name) {
  return name == "param"    ? &precision.param
         : name == "reduce" ? &precision.reduce
         : name == "grad"   ? &precision.grad
         : name == "buffer" ? &precision.buffer
         : name == "output" ? &precision.output
         : name == "master" ? &precision.master
                            : nullptr;
}

Precision Precision::orElse(const Precision &other) const {
  return {param ? param : other.param,    reduce ? reduce : other.reduce, grad ? grad : other.grad,
          buffer ? buffer : other.buffer, output ? output : other.output, master ? master : other.master};
}

static constexpr char kMasters[] = "masters are f32, of parameters in f16 or bf16: master=f32";

Expected<Precision> units::parsePrecision(const std::string &text) {
  Precision precision;
  std::istringstream entries(text);
  for (std::string entry; std::getline(entries, entry, ',');) {
    size_t equals = entry.find('=');
    std::optional<DType> *dtype = findDType(precision, entry.substr(0, equals));
    if (!dtype || equals == std::string::npos)
      return Status::badInput("'" + entry + "': expected NAME=TYPE; names: param, reduce, grad, buffer, output, master");
    *dtype = runtime::parseDType(entry.substr(equals + 1));
    if (!*dtype || !isFloating(**dtype))
      return Status::badInput("'" + entry + "': expected a floating type: f32, f64, f16 or bf16");
    if (precision.master.value_or(DType::F32) != DType::F32)
      return Status::badInput("'" + entry + "': " + kMasters);
  }
  return precision;
}

UnitOptions UnitOptions::orElse(const UnitOptions &other) const {
  UnitOptions result = *this;
  auto take = [](auto &to, const auto &from) {
    if (!to)
      to = from;
  };
  take(result.mode, other.mode);
  take(result.reshardAfterForward, other.reshardAfterForward);
  take(result.precision, other.precision);
  take(result.prefetch, other.prefetch);
  take(result.mesh, other.mesh);
  return result;
}

Precision units::readPrecision(JsonValue json) {
  Precision precision;
  json.forEachMember([&](const std::string &key, JsonValue value) {
    std::optional<DType> *dtype = findDType(precision, key);
    if (!dtype)
      return value.fail("unknown dtype of mixed precision; allowed: param, reduce, grad, buffer, output, master");
    if (value.isNull())
      return;
    *dtype = value.asDType();
    if (!isFloating(**dtype))
      value.fail("expected a floating dtype: f32, f64, f16 or bf16");
    if (precision.master.value_or(DType::F32) != DType::F32)
      value.fail(kMasters);
  });
  // As in PyTorch: gradients come in the dtype of the computation.
  if (precision.param && !precision.reduce)
    precision.reduce = precision.param;
  return precision;
}

static int64_t readReshard(JsonValue json) {
  if (json.kind() == JsonValue::Kind::Bool)
    return json.asBool() ? UnitOptions::kReshard : UnitOptions::kKeep;
  int64_t group = json.asInt();
  if (group < 1)
    json.fail("expected true, false or a number of ranks, at least 1; found " + std::to_string(group));
  // A group of one rank keeps what it has gathered.
  return group == 1 ? UnitOptions::kKeep : group;
}

Expected<int64_t> units::parseReshard(const std::string &text) {
  if (text == "true" || text == "false")
    return text == "true" ? UnitOptions::kReshard : UnitOptions::kKeep;
  int64_t group = 0;
  const char *end = text.data() + text.size();
  auto [stop, problem] = std::from_chars(text.data(), end, group);
  if (problem != std::errc() || stop != end || group < 1)
    return Status::badInput("expected true, false, or a number of ranks");
  return group == 1 ? UnitOptions::kKeep : group;
}

/// [replicate, shard].
static Mesh readMesh(JsonValue json) {
  std::vector<int64_t> sizes = json.asSizes();
  if (sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 2) {
    json.fail("expected [replicate, shard]: two sizes, of which the second is at least 2");
    return {};
  }
  return {sizes[0], sizes[1]};
}

UnitOptions units::readOptions(JsonValue json) {
  UnitOptions options;
  json.forEachMember([&](const std::string &key, JsonValue value) {
    if (key == "mode") {
      options.mode = parseMode(value.asString());
      if (!options.mode)
        value.fail(std::string("expected ") + kModes + "; found \"" + value.asString() + "\"");
    } else if (key == "reshard_after_forward") {
      if (!value.isNull())
        options.reshardAfterForward = readReshard(value);
    } else if (key == "precision") {
      options.precision = value.isNull() ? Precision() : readPrecision(value);
    } else if (key == "prefetch") {
      options.prefetch = value.asInt();
      if (*options.prefetch < 0 || *options.prefetch > 1)
        value.fail("expected 0 or 1, found " + std::to_string(*options.prefetch));
    } else if (key == "ranks") {
      options.mesh = Mesh::of(value.asSize());
    } else if (key == "mesh") {
      options.mesh = readMesh(value);
    } else {
      value.fail("unknown option of a shard unit; allowed: mode, reshard_after_forward, precision, prefetch, ranks, "
                 "mesh");
    }
  });
  return options;
}

Status units::completeMode(UnitOptions &options, const std::string &unit) {
  if (options.mode != Mode::shardGradOp && options.mode != Mode::shardOptimizer)
    return Status::success();
  if (!options.reshardAfterForward)
    options.reshardAfterForward = UnitOptions::kKeep;
  if (*options.reshardAfterForward == UnitOptions::kKeep)
    return Status::success();
  const char *what = options.mode == Mode::shardGradOp ? "keeps gathered parameters until backward"
                                                       : "has whole parameters, which are not gathered for forward";
  return Status::badInput((unit.empty() ? "" : "unit '" + unit + "': ") + "mode " + nameOf(*options.mode) + " " + what +
                          "; leave reshard_after_forward out, or take the mode fully_shard");
}

Status units::resolveOptions(UnitOptions &options, const Mesh &mesh, const std::string &unit) {
  auto fail = [&](const std::string &message) { return Status::badInput("unit '" + unit + "': " + message); };
  // Annotations speak of the axes along which the batch is cut.
  if (options.mesh && *options.mesh != mesh.withoutTensor())
    return fail("is annotated for a mesh of " + options.mesh->describe() + ", there are " + mesh.describe());
  if (options.mode == Mode::hybrid && !mesh.hasTwoAxes() && mesh.dataRanks() > 1)
    return fail("mode hybrid is for a mesh of two axes, there are " + mesh.describe() +
                "; arrange them as mesh=replicate:N,shard:M, or take the mode fully_shard");
  int64_t ranks = mesh.shard;
  if (Status status = completeMode(options, unit); !status.ok())
    return status;
  if (std::optional<int64_t> &group = options.reshardAfterForward; group && *group > UnitOptions::kReshard) {
    if (ranks % *group != 0)
      return fail("reshard_after_forward is " + std::to_string(*group) + ", expected a factor of the " +
                  std::to_string(ranks) + " ranks" + (mesh.hasTwoAxes() ? " of the axis shard" : ""));
    if (*group == ranks)
      group = UnitOptions::kReshard;
  }
  return Status::success();
}
