//===- OperationMutations.cpp - Commands that do something else -----------===//

#include "Mutation.h"

#include <algorithm>

using namespace spmd::mutation;
using Done = std::optional<std::string>;

/// One of the commands with this `op`, or nothing.
static std::optional<size_t> pickCommand(Program &program, Random &random, const std::string &op) {
  std::vector<size_t> candidates = commandsOf(program, op);
  return candidates.empty() ? std::nullopt : std::optional(random.pick(candidates));
}

static Done set(Program &program, size_t command, const std::string &key, Json value) {
  if (program.commands()[command].value(key, Json()) == value)
    return std::nullopt;
  return nameCommand(program, command) + " " + setField(program.commands()[command], key, std::move(value));
}

static Done setOther(Program &program, Random &random, size_t command, const std::string &key,
                     std::vector<std::string> values) {
  values.erase(std::remove(values.begin(), values.end(), program.commands()[command].value(key, std::string())),
               values.end());
  return values.empty() ? std::nullopt : set(program, command, key, random.pick(values));
}

static int64_t nearby(int64_t value, Random &random) {
  std::vector<int64_t> values = {value + 1, value * 2, std::max<int64_t>(value - 1, 0), value / 2};
  return random.pick(values);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static Done changeSymbol(Program &program, Random &random) {
  std::vector<std::pair<size_t, std::string>> pairs;
  std::vector<size_t> kernels = launchesOf(program);
  for (size_t a : kernels)
    for (size_t b : kernels) {
      Json &first = program.commands()[a], &second = program.commands()[b];
      if (first["kernel"] != second["kernel"] && refsOf(program, a).size() == refsOf(program, b).size())
        pairs.emplace_back(a, second["kernel"]);
    }
  if (pairs.empty())
    return std::nullopt;
  auto &[command, symbol] = random.pick(pairs);
  return set(program, command, "kernel", symbol);
}

static Done changeNumber(Program &program, Random &random, const std::vector<size_t> &candidates,
                         const std::string &key) {
  if (candidates.empty())
    return std::nullopt;
  size_t command = random.pick(candidates);
  return set(program, command, key, nearby(program.commands()[command][key], random));
}

static Done changeIterations(Program &program, Random &random) {
  return changeNumber(program, random, launchesOf(program), "parallel");
}
static Done changeGrain(Program &program, Random &random) {
  return changeNumber(program, random, launchesOf(program), "grain");
}

//===----------------------------------------------------------------------===//
// Attentions
//===----------------------------------------------------------------------===//

static std::vector<size_t> attentionsOf(Program &program) {
  std::vector<size_t> found = commandsOf(program, "attention");
  for (size_t command : commandsOf(program, "attention_backward"))
    found.push_back(command);
  return found;
}

static Done changeAttention(Program &program, Random &random) {
  std::vector<size_t> candidates = attentionsOf(program);
  if (candidates.empty())
    return std::nullopt;
  size_t command = random.pick(candidates);
  Json &json = program.commands()[command];
  std::vector<std::string> keys = {"batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "v_dim"};
  switch (random.below(4)) {
  case 0:
    return set(program, command, "scale", json["scale"].get<double>() * 2);
  case 1:
    if (json.contains("window_high")) {
      json.erase("window_high");
      return nameCommand(program, command) + " loses its window_high";
    }
    return set(program, command, "window_high", 0);
  default:
    std::string key = random.pick(keys);
    return set(program, command, key, nearby(json[key], random));
  }
}

static Done changeView(Program &program, Random &random) {
  std::vector<size_t> candidates = attentionsOf(program);
  if (candidates.empty())
    return std::nullopt;
  size_t command = random.pick(candidates);
  Json &views = program.commands()[command]["views"];
  std::vector<std::string> names, strides = {"offset", "batch", "head", "row"};
  for (auto &[name, view] : views.items())
    names.push_back(name);
  Json &view = views[random.pick(names)];
  std::string key = random.pick(strides);
  int64_t before = view[key], after = nearby(before, random);
  if (before == after)
    return std::nullopt;
  return nameCommand(program, command) + " " + setField(view, key, after);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static Done transpose(Program &program, Random &random) {
  std::optional<size_t> command = pickCommand(program, random, "gemm");
  if (!command)
    return std::nullopt;
  Json &gemm = program.commands()[*command];
  bool isA = random.below(2);
  std::string key = isA ? "trans_a" : "trans_b";
  std::string done = nameCommand(program, *command) + " " + setField(gemm, key, !gemm[key].get<bool>());
  // Half of the time the rows get the length that makes the matrix fit again.
  if (random.below(2)) {
    bool now = gemm[key];
    done += ", " + setField(gemm, isA ? "lda" : "ldb", gemm[isA ? (now ? "m" : "k") : (now ? "k" : "n")]);
  }
  return done;
}

static Done changeGemmNumber(Program &program, Random &random, const std::vector<std::string> &keys) {
  return changeNumber(program, random, commandsOf(program, "gemm"), random.pick(keys));
}
static Done changeSizes(Program &program, Random &random) {
  return changeGemmNumber(program, random, {"m", "n", "k", "batch"});
}
static Done changeStrides(Program &program, Random &random) {
  return changeGemmNumber(program, random, {"lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c"});
}

static Done exchangeSizes(Program &program, Random &random) {
  std::optional<size_t> command = pickCommand(program, random, "gemm");
  if (!command)
    return std::nullopt;
  Json &gemm = program.commands()[*command];
  std::vector<std::string> keys = {"m", "n", "k"};
  keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(random.below(3)));
  Json first = gemm[keys[0]];
  if (first == gemm[keys[1]])
    return std::nullopt;
  std::string done = nameCommand(program, *command) + " " + setField(gemm, keys[0], gemm[keys[1]]);
  return done + ", " + setField(gemm, keys[1], first);
}

static Done changeBeta(Program &program, Random &random) {
  std::optional<size_t> command = pickCommand(program, random, "gemm");
  if (!command)
    return std::nullopt;
  return set(program, *command, "beta", program.commands()[*command]["beta"] == 0 ? 1.0 : 0.0);
}

static Done changeEpilogue(Program &program, Random &random) {
  std::optional<size_t> command = pickCommand(program, random, "gemm");
  if (!command)
    return std::nullopt;
  Json &gemm = program.commands()[*command];
  for (const char *part : {"bias", "residual", "activation", "pre_activation"})
    if (gemm.contains(part) && random.below(2)) {
      gemm.erase(part);
      return nameCommand(program, *command) + " loses its " + part;
    }
  if (gemm.contains("bias_gradient") && random.below(2)) {
    gemm.erase("bias_gradient");
    gemm.erase("bias_gradient_of");
    return nameCommand(program, *command) + " loses its bias_gradient";
  }
  // Else it gets one: any bytes that another product has.
  std::vector<RefPlace> places;
  for (RefPlace &place : allRefs(program))
    if ((*place.ref)["bytes"] == gemm["c"]["bytes"])
      places.push_back(place);
  Json residual = *random.pick(places).ref;
  residual["access"] = "r";
  return set(program, *command, "residual", residual);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static Done changeUnit(Program &program, Random &random) {
  std::vector<size_t> collectives = collectivesOf(program);
  std::vector<std::string> units = {""};
  for (Json &unit : program.manifest["units"])
    units.push_back(unit["name"]);
  if (collectives.empty())
    return std::nullopt;
  return setOther(program, random, random.pick(collectives), "unit", units);
}

/// Another dtype; of the same size every other check still holds.
static Done changeDType(Program &program, Random &random) {
  std::vector<size_t> candidates = collectivesOf(program);
  for (const char *op : {"gemm", "check_index"})
    for (size_t command : commandsOf(program, op))
      candidates.push_back(command);
  if (candidates.empty())
    return std::nullopt;
  return setOther(program, random, random.pick(candidates), "dtype",
                  {"f32", "i32", "f64", "i64", "bf16", "f16", "u8", "i1"});
}

static Done changeKind(Program &program, Random &random) {
  std::vector<size_t> candidates;
  for (size_t command : collectivesOf(program))
    if (program.commands()[command]["op"] != "all_gather")
      candidates.push_back(command);
  if (candidates.empty())
    return std::nullopt;
  size_t command = random.pick(candidates);
  static const std::vector<std::string> kinds = {"sum", "max", "min", "norm2"};
  Json &json = program.commands()[command];
  if (json.contains("kind"))
    return setOther(program, random, command, "kind", kinds);
  Json list = json["kinds"];
  if (list.empty())
    return std::nullopt;
  list[random.below(list.size())] = random.pick(kinds);
  return set(program, command, "kinds", list);
}

/// Fewer elements, in count and bytes.
static Done changeCount(Program &program, Random &random) {
  std::vector<size_t> candidates;
  for (size_t command : collectivesOf(program))
    if (program.commands()[command].contains("count") && program.commands()[command]["count"] > 1)
      candidates.push_back(command);
  if (candidates.empty())
    return std::nullopt;
  size_t command = random.pick(candidates);
  Json &json = program.commands()[command];
  int64_t count = json["count"], less = random.below(2) ? count / 2 : count - 1;
  for (const char *side : {"send", "recv"})
    json[side]["bytes"] = json[side]["bytes"].get<int64_t>() / count * less;
  return set(program, command, "count", less);
}

static Done changeCommunicator(Program &program, Random &random) {
  std::vector<size_t> collectives = collectivesOf(program);
  if (collectives.empty())
    return std::nullopt;
  return setOther(program, random, random.pick(collectives), "comm", program.plan["communicators"]);
}

static Done changeMessage(Program &program, Random &random) {
  std::vector<size_t> candidates;
  for (size_t command : commandsOf(program, "all_reduce"))
    if (!program.commands()[command]["buffers"].empty())
      candidates.push_back(command);
  if (candidates.empty())
    return std::nullopt;
  size_t command = random.pick(candidates);
  Json &json = program.commands()[command];
  size_t entry = random.below(json["buffers"].size());
  for (const char *key : {"buffers", "counts", "kinds"})
    json[key].erase(json[key].begin() + static_cast<std::ptrdiff_t>(entry));
  return nameCommand(program, command) + " does not reduce buffer " + std::to_string(entry);
}

//===----------------------------------------------------------------------===//
// Copies, fills and checks
//===----------------------------------------------------------------------===//

static Done changeFill(Program &program, Random &random) {
  std::optional<size_t> command = pickCommand(program, random, "fill");
  if (!command)
    return std::nullopt;
  std::vector<int64_t> values = {1, 63, 127, 128, 255};
  return set(program, *command, "value", random.pick(values));
}

static Done changeRange(Program &program, Random &random) {
  std::vector<size_t> candidates = commandsOf(program, "fill");
  for (size_t command : commandsOf(program, "copy"))
    candidates.push_back(command);
  if (candidates.empty())
    return std::nullopt;
  size_t command = random.pick(candidates);
  int64_t bytes = program.commands()[command]["bytes"];
  if (bytes < 8)
    return std::nullopt;
  std::vector<int64_t> sizes = {bytes - 4, bytes / 2};
  int64_t less = random.pick(sizes);
  for (RefPlace &place : refsOf(program, command))
    (*place.ref)["bytes"] = less;
  return set(program, command, "bytes", less);
}

static Done changeBounds(Program &program, Random &random) {
  std::optional<size_t> command = pickCommand(program, random, "check_index");
  if (!command)
    return std::nullopt;
  std::string key = random.below(2) ? "low" : "high";
  return set(program, *command, key, nearby(program.commands()[*command][key], random));
}

const std::vector<MutationClass> &spmd::mutation::operationMutations() {
  static const std::vector<MutationClass> list = {
      {"kernel-symbol", "a command runs another kernel of as many arguments", nullptr, changeSymbol},
      {"kernel-iterations", "a kernel does more or fewer iterations", nullptr, changeIterations},
      {"kernel-grain", "iterations are cut otherwise", "how iterations are cut changes no bit", changeGrain},
      {"attention-shape", "an attention has another size, scale or window", nullptr, changeAttention},
      {"attention-view", "an attention's heads or rows lie otherwise", nullptr, changeView},
      {"gemm-transpose", "a product reads its operand by columns", nullptr, transpose},
      {"gemm-sizes", "a product has another size", nullptr, changeSizes},
      {"gemm-strides", "a product's rows or matrices lie otherwise", "one matrix has no use for a stride",
       changeStrides},
      {"gemm-exchange", "two sizes of a product exchange places", nullptr, exchangeSizes},
      {"gemm-beta", "a product adds to its result, or does not", nullptr, changeBeta},
      {"gemm-epilogue", "a product's epilogue has a part less or more", nullptr, changeEpilogue},
      {"collective-unit", "a collective is said to be another unit's", nullptr, changeUnit},
      {"dtype", "a collective, product or check takes another type", nullptr, changeDType},
      {"collective-kind", "a reduction combines otherwise", nullptr, changeKind},
      {"collective-count", "a collective moves less", nullptr, changeCount},
      {"collective-comm", "a collective uses another communicator",
       "every communicator has all ranks, and each is still used from one stream", changeCommunicator},
      {"collective-message", "an all-reduce leaves a buffer out", nullptr, changeMessage},
      {"fill-value", "a fill writes another byte", "nothing reads the bytes", changeFill},
      {"range", "a copy or fill covers less", "nothing reads the rest, or it holds the same value", changeRange},
      {"check-bounds", "a check of row numbers allows others", nullptr, changeBounds},
  };
  return list;
}
