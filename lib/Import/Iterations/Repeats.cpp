//===- Repeats.cpp - Iterations that a step.json has once -----------------===//

#include "Repeats.h"

#include <algorithm>
#include <set>
#include <unordered_map>

using namespace spmd;
using namespace spmd::step;
using runtime::JsonValue;

static Repeat readRepeat(JsonValue json) {
  Repeat repeat;
  repeat.begin = json["begin"].asSize();
  repeat.end = json["end"].asSize();
  repeat.count = json["count"].asSize();
  json["fed"].forEach([&](JsonValue item) { repeat.fed.push_back({item["value"].asSize(), item["of"].asSizes()}); });
  json["carried"].forEach(
      [&](JsonValue item) { repeat.carried.push_back({item["value"].asSize(), item["next"].asSize()}); });
  repeat.streams = json.has("streams") ? json["streams"].asSize() : 0;
  if (json.has("each"))
    json["each"].forEach(
        [&](JsonValue item) { repeat.each.push_back({item["value"].asSize(), item["of"].asSizes()}); });
  return repeat;
}

RepeatReader::RepeatReader(Step &step, JsonValue root) : step(step) {
  if (!root.has("repeats"))
    return;
  root["repeats"].forEach([&](JsonValue json) {
    step.repeats.push_back(readRepeat(json));
    entries.push_back(json);
  });
}

void RepeatReader::nameIterations(const std::function<void(int64_t, JsonValue)> &define) {
  int64_t here = static_cast<int64_t>(step.nodes.size());
  for (; named < entries.size() && step.repeats[named].end <= here; ++named)
    if (entries[named].has("each"))
      entries[named]["each"].forEach(
          [&](JsonValue item) { item["of"].forEach([&](JsonValue id) { define(id.asSize(), id); }); });
}

namespace {
/// Where each number of a step comes from. Those of iterations are results of the last node of their range.
class Definitions {
public:
  struct Definition {
    int64_t node = -1; ///< -1: an input
    TensorSpec spec;
    int64_t root = 0; ///< the number whose memory it shares; its own if it has memory of its own
  };

  explicit Definitions(const Step &step) {
    for (const Input &input : step.inputs)
      table[input.id] = {-1, input.spec, input.id};
    size_t ended = 0;
    for (size_t i = 0; i < step.nodes.size(); ++i) {
      addNode(step.nodes[i], static_cast<int64_t>(i));
      for (; ended < step.repeats.size() && step.repeats[ended].end <= static_cast<int64_t>(i) + 1; ++ended)
        for (const Repeat::Each &each : step.repeats[ended].each)
          if (const Definition *value = find(each.value)) {
            Definition named{static_cast<int64_t>(i), value->spec, value->root};
            for (int64_t id : each.of)
              table[id] = named;
          }
    }
  }

  const Definition *find(int64_t id) const {
    auto found = table.find(id);
    return found == table.end() ? nullptr : &found->second;
  }
  int64_t root(int64_t id) const { return find(id)->root; }

private:
  void addNode(const Node &node, int64_t number) {
    const Arg *source = node.viewOf.empty() ? nullptr : node.findArg(node.viewOf);
    for (const std::optional<Result> &result : node.results)
      if (result)
        table[result->id] = {number, result->spec, source ? root(source->integer) : result->id};
  }

  std::unordered_map<int64_t, Definition> table;
};

/// Checks one entry of `repeats`; every method is an error of the JSON, or nothing.
class RepeatChecker {
public:
  RepeatChecker(const Step &step, const Definitions &definitions, const Repeat &repeat, JsonValue json)
      : step(step), definitions(definitions), repeat(repeat), json(json) {}

  void checkFed();
  void checkCarried();
  void checkEach();
  void checkWrites();

private:
  bool isBefore(int64_t id) const {
    const auto *found = definitions.find(id);
    return found && found->node < repeat.begin;
  }
  bool isInside(int64_t id) const {
    const auto *found = definitions.find(id);
    return found && found->node >= repeat.begin && found->node < repeat.end;
  }
  void expectBefore(int64_t id, JsonValue where) const {
    if (!isBefore(id))
      where.fail("expected a value that is defined before the range, found " + std::to_string(id));
  }
  void expectInside(int64_t id, JsonValue where) const {
    if (!isInside(id))
      where.fail("expected a result of a node in the range, found " + std::to_string(id));
  }
  void expectAlike(int64_t value, int64_t other, JsonValue where) const {
    const auto *a = definitions.find(value), *b = definitions.find(other);
    if (a && b && !(a->spec == b->spec))
      where.fail("value " + std::to_string(other) + " is " + formatSpec(b->spec) + ", value " + std::to_string(value) +
                 " is " + formatSpec(a->spec));
  }
  void expectOnce(int64_t value, JsonValue where) {
    if (!bound.insert(value).second)
      where.fail("value " + std::to_string(value) + " is fed or carried twice");
  }
  void expectCount(const std::vector<int64_t> &of, JsonValue where) const {
    if (static_cast<int64_t>(of.size()) != repeat.count)
      where.fail("expected " + std::to_string(repeat.count) + " values, one an iteration, found " +
                 std::to_string(of.size()));
  }
  /// Calls `visit` with each entry of the list `key`, and with its JSON.
  template <typename Entry, typename Visit>
  void visit(const std::vector<Entry> &entries, const char *key, Visit visit) const {
    size_t i = 0;
    if (!entries.empty())
      json[key].forEach([&](JsonValue item) { visit(entries[i++], item); });
  }
  template <typename Visit>
  static void visitNumbers(const std::vector<int64_t> &of, JsonValue list, Visit visit) {
    size_t i = 0;
    list.forEach([&](JsonValue item) { visit(of[i++], item); });
  }

  const Step &step;
  const Definitions &definitions;
  const Repeat &repeat;
  JsonValue json;
  std::set<int64_t> bound; ///< what is another value in each iteration
  std::set<int64_t> kept;  ///< roots of the memory that the nodes must not write
};
} // namespace

void RepeatChecker::checkFed() {
  visit(repeat.fed, "fed", [&](const Repeat::Fed &fed, JsonValue item) {
    expectCount(fed.of, item["of"]);
    expectOnce(fed.value, item["value"]);
    if (fed.of.empty() || fed.of.front() != fed.value)
      item["value"].fail("expected the first of the values");
    visitNumbers(fed.of, item["of"], [&](int64_t id, JsonValue where) {
      expectBefore(id, where);
      expectAlike(fed.value, id, where);
      if (isBefore(id))
        kept.insert(definitions.root(id));
    });
  });
}

void RepeatChecker::checkCarried() {
  visit(repeat.carried, "carried", [&](const Repeat::Carried &carried, JsonValue item) {
    expectOnce(carried.value, item["value"]);
    expectBefore(carried.value, item["value"]);
    expectInside(carried.next, item["next"]);
    expectAlike(carried.value, carried.next, item["next"]);
    if (!isBefore(carried.value) || !isInside(carried.next))
      return;
    int64_t first = definitions.root(carried.value), later = definitions.root(carried.next);
    if (first == later)
      return; // the same memory in all iterations, which goes on as it does by itself
    kept.insert(first);
    if (isBefore(later)) // new memory may be written where it is made
      kept.insert(later);
  });
}

void RepeatChecker::checkEach() {
  visit(repeat.each, "each", [&](const Repeat::Each &each, JsonValue item) {
    expectInside(each.value, item["value"]);
    expectCount(each.of, item["of"]);
    // A number that nobody else has: the reader of nodes looks at that.
    if (std::find(each.of.begin(), each.of.end(), each.value) != each.of.end())
      item["of"].fail("expected new numbers, found " + std::to_string(each.value));
  });
}

void RepeatChecker::checkWrites() {
  auto fail = [&](const Node &node, int64_t id) {
    json.fail("'" + node.op + "' (" + node.pointer + ") writes value " + std::to_string(id) +
              ", whose memory is fed or carried from iteration to iteration");
  };
  for (int64_t i = repeat.begin; i < repeat.end; ++i) {
    const Node &node = step.nodes[i];
    for (const std::string &name : node.mutates) {
      const Arg &arg = *node.findArg(name);
      std::vector<int64_t> written = arg.kind == Arg::Kind::value ? std::vector<int64_t>{arg.integer} : arg.integers;
      for (int64_t id : written)
        if (id >= 0 && kept.count(definitions.root(id)))
          return fail(node, id);
    }
  }
}

/// Whether the range is behind `previousEnd` and within `nodes` nodes, of which there are `unrolled` with the
/// iterations so far.
static bool checkRange(const Repeat &repeat, JsonValue json, int64_t nodes, int64_t previousEnd, int64_t unrolled) {
  if (repeat.begin < previousEnd)
    json["begin"].fail("expected a node behind the range before, which ends at " + std::to_string(previousEnd));
  else if (repeat.end <= repeat.begin || repeat.end > nodes)
    json["end"].fail("expected a number above " + std::to_string(repeat.begin) + " and at most " +
                     std::to_string(nodes) + ", found " + std::to_string(repeat.end));
  else if (repeat.count < 2)
    json["count"].fail("expected at least 2 iterations, found " + std::to_string(repeat.count));
  else if (repeat.count - 1 > (kMaxUnrolledNodes - unrolled) / (repeat.end - repeat.begin))
    json["count"].fail("with all iterations there are more than " + std::to_string(kMaxUnrolledNodes) +
                       " nodes; give a call fewer of them");
  else
    return true;
  return false;
}

void RepeatReader::check() const {
  if (entries.empty())
    return;
  // The table of numbers needs ranges that are in order.
  int64_t nodes = static_cast<int64_t>(step.nodes.size()), previousEnd = 0, unrolled = nodes;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Repeat &repeat = step.repeats[i];
    if (!checkRange(repeat, entries[i], nodes, previousEnd, unrolled))
      return;
    previousEnd = repeat.end;
    unrolled += (repeat.count - 1) * (repeat.end - repeat.begin);
  }
  Definitions definitions(step);
  for (size_t i = 0; i < entries.size(); ++i) {
    RepeatChecker checker(step, definitions, step.repeats[i], entries[i]);
    checker.checkFed();
    checker.checkCarried();
    checker.checkEach();
    checker.checkWrites();
  }
}

namespace {
/// Copies nodes with other numbers.
class Unroller {
public:
  explicit Unroller(Step &step) : step(step) {
    for (const Input &input : step.inputs)
      seen(input.id);
    for (const Node &node : step.nodes)
      for (const std::optional<Result> &result : node.results)
        if (result)
          seen(result->id);
    for (const Repeat &repeat : step.repeats)
      for (const Repeat::Each &each : repeat.each)
        for (int64_t id : each.of)
          seen(id);
  }

  void run() {
    std::vector<Node> rolled = std::move(step.nodes);
    step.nodes.clear();
    size_t at = 0;
    auto copyUntil = [&](size_t end) {
      for (; at < end; ++at) {
        rename(rolled[at], {});
        step.nodes.push_back(std::move(rolled[at]));
      }
    };
    for (const Repeat &repeat : step.repeats) {
      copyUntil(static_cast<size_t>(repeat.begin));
      unroll(repeat, rolled);
      at = static_cast<size_t>(repeat.end);
    }
    copyUntil(rolled.size());
    for (Output &output : step.outputs)
      output.value = resolve(output.value, {});
    step.repeats.clear();
  }

private:
  using Numbers = std::unordered_map<int64_t, int64_t>;

  void seen(int64_t id) { next = std::max(next, id + 1); }

  /// What a number of the rolled program is here: in an iteration, or another name of a last iteration's result.
  int64_t resolve(int64_t id, const Numbers &iteration) const {
    if (auto found = iteration.find(id); found != iteration.end())
      return found->second;
    auto last = lastNames.find(id);
    return last == lastNames.end() ? id : last->second;
  }

  void rename(Node &node, const Numbers &iteration) const {
    for (Arg &arg : node.args) {
      if (arg.kind == Arg::Kind::value)
        arg.integer = resolve(arg.integer, iteration);
      if (arg.kind == Arg::Kind::values)
        for (int64_t &id : arg.integers)
          id = id < 0 ? id : resolve(id, iteration);
    }
  }

  void unroll(const Repeat &repeat, const std::vector<Node> &rolled) {
    Numbers carried; // what `next` was in the iteration before
    for (int64_t k = 0; k < repeat.count; ++k) {
      bool isLast = k == repeat.count - 1;
      Numbers iteration;
      for (const Repeat::Fed &fed : repeat.fed)
        iteration[fed.value] = resolve(fed.of[k], {});
      for (const Repeat::Carried &entry : repeat.carried)
        if (k > 0)
          iteration[entry.value] = carried[entry.next];
      // A result with several names is called by the first.
      Numbers names;
      for (const Repeat::Each &each : repeat.each)
        names.try_emplace(each.value, each.of[k]);
      for (int64_t i = repeat.begin; i < repeat.end; ++i) {
        Node node = rolled[i];
        rename(node, iteration);
        for (Arg &arg : node.args)
          if (arg.name == "stream" && arg.kind == Arg::Kind::integer)
            arg.integer += k * repeat.streams;
        for (std::optional<Result> &result : node.results) {
          if (!result || isLast)
            continue;
          auto name = names.find(result->id);
          int64_t id = name == names.end() ? next++ : name->second;
          iteration[result->id] = id;
          result->id = id;
        }
        step.nodes.push_back(std::move(node));
      }
      for (const Repeat::Carried &entry : repeat.carried)
        carried[entry.next] = resolve(entry.next, iteration);
      for (const Repeat::Each &each : repeat.each)
        if (int64_t id = resolve(each.value, iteration); id != each.of[k])
          lastNames[each.of[k]] = id;
    }
  }

  Step &step;
  int64_t next = 0; ///< the first number that is not taken
  Numbers lastNames;
};
} // namespace

Step step::unroll(const Step &step) {
  Step unrolled = step;
  Unroller(unrolled).run();
  return unrolled;
}

/// Whether `loop` is fed inputs of the batch, which are read there alone, each in its iteration.
static bool isFedInputs(const Step &step, const Repeat &loop) {
  std::set<int64_t> inputs, later;
  for (const Input &input : step.inputs)
    if (input.kind == InputKind::batch)
      inputs.insert(input.id);
  std::set<int64_t> firsts;
  for (const Repeat::Fed &fed : loop.fed) {
    firsts.insert(fed.value);
    for (int64_t id : fed.of)
      if (!inputs.count(id) || !later.insert(id).second)
        return false;
  }
  auto isRead = [&](int64_t id, bool isInLoop) { return later.count(id) && !(isInLoop && firsts.count(id)); };
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    bool isInLoop = static_cast<int64_t>(i) >= loop.begin && static_cast<int64_t>(i) < loop.end;
    for (const Arg &arg : step.nodes[i].args) {
      if (arg.kind == Arg::Kind::value && isRead(arg.integer, isInLoop))
        return false;
      if (arg.kind == Arg::Kind::values &&
          std::any_of(arg.integers.begin(), arg.integers.end(), [&](int64_t id) { return isRead(id, isInLoop); }))
        return false;
    }
  }
  auto isBound = [&](const Repeat &repeat) {
    return &repeat != &loop &&
           (std::any_of(repeat.fed.begin(), repeat.fed.end(),
                        [&](const Repeat::Fed &fed) {
                          return std::any_of(fed.of.begin(), fed.of.end(), [&](int64_t id) { return later.count(id); });
                        }) ||
            std::any_of(repeat.carried.begin(), repeat.carried.end(),
                        [&](const Repeat::Carried &carried) { return later.count(carried.value); }));
  };
  return std::none_of(step.repeats.begin(), step.repeats.end(), isBound) &&
         std::none_of(step.outputs.begin(), step.outputs.end(),
                      [&](const Output &output) { return later.count(output.value); });
}

const Repeat *step::findUniformLoop(const Step &step, int64_t kept) {
  const Repeat *longest = nullptr;
  auto sizeOf = [](const Repeat &repeat) { return (repeat.end - repeat.begin) * repeat.count; };
  for (const Repeat &repeat : step.repeats)
    if (repeat.count > kept && repeat.each.empty() && (!longest || sizeOf(repeat) > sizeOf(*longest)))
      longest = &repeat;
  return longest && isFedInputs(step, *longest) ? longest : nullptr;
}

Step step::keepIterations(const Step &step, const Repeat &loop, int64_t kept) {
  Step few = step;
  Repeat &repeat = few.repeats[&loop - step.repeats.data()];
  repeat.count = kept;
  for (Repeat::Fed &fed : repeat.fed)
    fed.of.resize(kept);
  return few;
}
