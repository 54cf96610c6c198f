//===- ChooseModules.cpp - the walk that asks a policy --------------------===//

#include "UnitsByUse.h"
#include "spmd/ShardUnits/ShardUnits.h"

#include <algorithm>
#include <regex>

using namespace spmd;
using namespace spmd::units;
using runtime::Expected;
using runtime::Status;
using Kind = Policy::Kind;

namespace {

/// A policy with what it says of each module, as far as that does not depend on the walk.
struct Asked {
  const Policy *policy = nullptr;
  std::vector<bool> matches, forceLeaf, exclude;
  /// Of a custom policy, by module.
  std::vector<UnitOptions> options;
  std::vector<Asked> parts;
};

/// That a policy wants a module as a unit.
struct Wish {
  UnitOptions options;
  /// The rule whose modules are one unit together.
  const Policy *together = nullptr;
};

class Chooser {
public:
  Chooser(const ModuleTree &tree, const Request &request, const std::vector<bool> &ignoredModules,
          const std::vector<bool> &ignoredParameters, const Decide &decide, std::vector<std::string> &warnings)
      : tree(tree), request(request), ignoredModules(ignoredModules), ignoredParameters(ignoredParameters),
        decide(decide), warnings(warnings) {}

  Expected<Choices> run();

private:
  Asked prepare(const Policy &policy);
  void matchClasses(const std::vector<std::string> &names, bool exact, std::vector<bool> &matches,
                    const std::string &location);
  void matchPaths(const Policy &policy, std::vector<bool> &matches);
  void askCustom(const Policy &policy, Asked &asked);
  bool recurses(const Asked &asked, size_t module);
  std::optional<Wish> wants(const Asked &asked, size_t module);
  void walk(const Asked &asked, size_t root);
  void choose(size_t module, const Wish &wish);
  void chooseRoot(const Asked &asked);
  void useAnnotations();
  void chooseByUse();
  void addReached();
  void exempt();
  void checkNothing(const Policy &policy, bool rootChosen);
  void checkNested();

  /// Elements of the distinct parameters in a module, but not in a chosen module below it when `remainder`.
  int64_t countElements(size_t module, bool remainder);
  bool answer(const Policy &policy, size_t module, bool recurse, std::string &options);
  bool isExempt(size_t module) const;
  void fail(const std::string &message) {
    if (status.ok())
      status = Status::badInput(message);
  }
  /// A name that matches nothing.
  void complain(const std::string &location, const std::string &message) {
    std::string text = (location.empty() ? "" : location + ": ") + message;
    if (request.strictNames)
      fail(text);
    else
      warnings.push_back(text);
  }

  const ModuleTree &tree;
  const Request &request;
  const std::vector<bool> &ignoredModules, &ignoredParameters;
  const Decide &decide;
  std::vector<std::string> &warnings;
  Choices result;
  std::vector<std::pair<const Policy *, size_t>> together;
  /// The root's options have mixed precision: exempt classes are or-ed to every policy.
  bool exempting = false;
  Status status;
};

} // namespace

//===----------------------------------------------------------------------===//
// What does not depend on the walk
//===----------------------------------------------------------------------===//

static std::string lastComponent(const std::string &name) { return name.substr(name.rfind('.') + 1); }

void Chooser::matchClasses(const std::vector<std::string> &names, bool exact, std::vector<bool> &matches,
                           const std::string &location) {
  matches.assign(tree.numModules(), false);
  for (const std::string &name : names) {
    bool found = false;
    for (size_t i = 0; i < tree.numModules(); ++i)
      if (tree.isInstance(i, name, exact))
        matches[i] = found = true;
    if (found)
      continue;
    std::vector<std::string> known;
    bool isQualified = name.find('.') != std::string::npos;
    auto add = [&](const std::string &known_name) {
      known.push_back(isQualified ? known_name : lastComponent(known_name));
    };
    for (size_t i = 0; i < tree.numModules(); ++i)
      add(tree.getModule(i).className);
    for (size_t i = 0; i < tree.numModules(); ++i)
      for (const std::string &base : tree.getModule(i).bases)
        add(base);
    complain(location, "no module has class '" + name + "'" + suggestNames(name, known));
  }
}

void Chooser::matchPaths(const Policy &policy, std::vector<bool> &matches) {
  matches.assign(tree.numModules(), false);
  std::vector<std::string> known;
  for (size_t i = 0; i < tree.numModules(); ++i)
    known.push_back(tree.getModule(i).path);
  if (policy.kind == Kind::modules) {
    for (const std::string &path : policy.names) {
      if (const size_t *module = tree.findModule(path))
        matches[*module] = true;
      else
        complain(policy.location, "no module is called '" + path + "'" + suggestNames(path, known));
    }
    return;
  }
  std::regex pattern(policy.names.front(), std::regex::ECMAScript);
  for (size_t i = 0; i < tree.numModules(); ++i)
    matches[i] = std::regex_match(tree.getModule(i).path, pattern);
  if (std::find(matches.begin(), matches.end(), true) == matches.end())
    complain(policy.location,
             "no module path matches '" + policy.names.front() + "'" + suggestNames(policy.names.front(), known));
}

bool Chooser::answer(const Policy &policy, size_t module, bool recurse, std::string &options) {
  if (!status.ok())
    return false;
  if (!decide) {
    fail("the policy needs a callback, but none was given");
    return false;
  }
  int64_t numel = policy.kind == Kind::custom ? 0 : countElements(module, /*remainder=*/!recurse);
  int32_t answer = decide(policy.callable, module, recurse, numel, options);
  if (answer < 0)
    fail("the policy failed at module '" + tree.getModule(module).path + "'");
  return answer > 0;
}

/// Every module in preorder, as PyTorch does, before any is chosen.
void Chooser::askCustom(const Policy &policy, Asked &asked) {
  asked.matches.assign(tree.numModules(), false);
  asked.options.resize(tree.numModules());
  for (size_t module : tree.getSubtree(0)) {
    if (ignoredModules[module])
      continue;
    std::string options;
    asked.matches[module] = answer(policy, module, /*recurse=*/false, options);
    if (!asked.matches[module] || options.empty())
      continue;
    runtime::JsonDocument document("options of module '" + tree.getModule(module).path + "'", options);
    if (document.status().ok())
      asked.options[module] = readOptions(document.root());
    if (!document.status().ok())
      fail(document.status().message);
  }
}

Asked Chooser::prepare(const Policy &policy) {
  Asked asked;
  asked.policy = &policy;
  switch (policy.kind) {
  case Kind::byClass:
    matchClasses(policy.names, policy.exact, asked.matches, policy.location);
    break;
  case Kind::byName:
  case Kind::modules:
    matchPaths(policy, asked.matches);
    break;
  case Kind::bySize: {
    // PyTorch's defaults need not be in the model.
    auto match = [&](const std::optional<std::vector<std::string>> &given, std::vector<std::string> defaults,
                     std::vector<bool> &matches) {
      if (given && !policy.exact)
        return matchClasses(*given, /*exact=*/false, matches, policy.location);
      matches.assign(tree.numModules(), false);
      for (const std::string &name : given ? *given : defaults)
        for (size_t i = 0; i < tree.numModules(); ++i)
          matches[i] = matches[i] || tree.isInstance(i, name, /*exact=*/true);
    };
    match(policy.forceLeaf, {"torch.nn.modules.activation.MultiheadAttention"}, asked.forceLeaf);
    match(policy.exclude, {"torch.nn.modules.container.ModuleList", "torch.nn.modules.container.ModuleDict"},
          asked.exclude);
    break;
  }
  case Kind::custom:
    askCustom(policy, asked);
    break;
  case Kind::any:
  case Kind::rules:
    for (const Policy &part : policy.parts)
      asked.parts.push_back(prepare(part));
    break;
  case Kind::annotations:
  case Kind::automatic:
  case Kind::none:
  case Kind::always:
  case Kind::callable:
    break;
  }
  return asked;
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

int64_t Chooser::countElements(size_t module, bool remainder) {
  std::vector<size_t> subtree = tree.getSubtree(module);
  std::vector<bool> counted(ignoredParameters);
  auto visit = [&](size_t of, int64_t *sum) {
    for (size_t parameter : tree.getOwnParameters(of))
      if (!counted[parameter]) {
        counted[parameter] = true;
        if (sum)
          *sum += tree.getNumel(parameter);
      }
  };
  if (remainder)
    for (size_t below : subtree)
      if (below != module && result.byModule[below] >= 0)
        for (size_t wrapped : tree.getSubtree(below))
          visit(wrapped, nullptr);
  int64_t sum = 0;
  for (size_t below : subtree)
    visit(below, &sum);
  return sum;
}

bool Chooser::isExempt(size_t module) const {
  return std::any_of(request.exemptClasses.begin(), request.exemptClasses.end(),
                     [&](const std::string &name) { return tree.isInstance(module, name); });
}

/// Whether to look below a module.
bool Chooser::recurses(const Asked &asked, size_t module) {
  const Policy &policy = *asked.policy;
  switch (policy.kind) {
  case Kind::annotations:
  case Kind::automatic:
  case Kind::none:
    return false;
  case Kind::bySize:
    return countElements(module, /*remainder=*/false) >= policy.size && !asked.forceLeaf[module];
  case Kind::callable: {
    std::string options;
    return answer(policy, module, /*recurse=*/true, options);
  }
  case Kind::any:
  case Kind::rules:
    return std::any_of(asked.parts.begin(), asked.parts.end(),
                       [&](const Asked &part) { return recurses(part, module); });
  case Kind::always:
  case Kind::byClass:
  case Kind::byName:
  case Kind::modules:
  case Kind::custom:
    return true;
  }
  return false;
}

/// Whether a module shall be a unit, and how.
std::optional<Wish> Chooser::wants(const Asked &asked, size_t module) {
  const Policy &policy = *asked.policy;
  bool wanted = false;
  std::string options;
  switch (policy.kind) {
  case Kind::annotations:
  case Kind::automatic:
  case Kind::none:
    break;
  case Kind::always:
    wanted = true;
    break;
  case Kind::byClass:
  case Kind::byName:
  case Kind::modules:
  case Kind::custom:
    wanted = asked.matches[module];
    break;
  case Kind::bySize:
    wanted = countElements(module, /*remainder=*/true) >= policy.size && !asked.exclude[module];
    break;
  case Kind::callable:
    wanted = answer(policy, module, /*recurse=*/false, options);
    break;
  case Kind::any:
  case Kind::rules:
    for (const Asked &part : asked.parts) {
      std::optional<Wish> wish = wants(part, module);
      if (!wish)
        continue;
      if (!part.policy->unit)
        return std::nullopt;
      wish->options = wish->options.orElse(part.policy->options);
      return wish;
    }
    break;
  }
  if (!wanted)
    return std::nullopt;
  Wish wish;
  if (policy.kind == Kind::custom)
    wish.options = asked.options[module];
  if (policy.isOneUnit)
    wish.together = &policy;
  return wish;
}

void Chooser::choose(size_t module, const Wish &wish) {
  if (wish.together)
    for (auto &[policy, choice] : together)
      if (policy == wish.together) {
        result.choices[choice].modules.push_back(module);
        result.byModule[module] = static_cast<int64_t>(choice);
        return;
      }
  if (wish.together)
    together.emplace_back(wish.together, result.choices.size());
  result.byModule[module] = static_cast<int64_t>(result.choices.size());
  result.choices.push_back({{module}, wish.options, {}});
}

void Chooser::walk(const Asked &asked, size_t root) {
  struct Entry {
    size_t module, next;
  };
  std::vector<bool> seen(tree.numModules(), false);
  seen[root] = true;
  std::vector<Entry> stack;
  auto enter = [&](size_t module) {
    // What does not recurse is no unit either.
    if (recurses(asked, module) || exempting)
      stack.push_back({module, 0});
  };
  enter(root);
  while (!stack.empty() && status.ok()) {
    Entry &top = stack.back();
    const std::vector<size_t> &children = tree.getChildren(top.module);
    if (top.next < children.size()) {
      size_t child = children[top.next++];
      if (!seen[child] && !ignoredModules[child]) {
        seen[child] = true;
        enter(child);
      }
      continue;
    }
    size_t module = top.module;
    stack.pop_back();
    if (module == root)
      continue;
    std::optional<Wish> wish = wants(asked, module);
    if (exempting && isExempt(module)) {
      wish = wish.value_or(Wish());
      wish->options.precision = Precision();
    }
    if (wish)
      choose(module, *wish);
  }
}

/// The root is a unit whatever a policy says; but what the policy says of its options holds. A size or a callable is
/// not asked, as in PyTorch.
void Chooser::chooseRoot(const Asked &asked) {
  std::function<bool(const Asked &)> isStatic = [&](const Asked &part) {
    Kind kind = part.policy->kind;
    return kind != Kind::bySize && kind != Kind::callable &&
           std::all_of(part.parts.begin(), part.parts.end(), isStatic);
  };
  std::optional<Wish> wish = ignoredModules[0] || !isStatic(asked) ? std::nullopt : wants(asked, 0);
  checkNothing(*asked.policy, wish.has_value());
  if (wish && wish->together)
    fail("the root can be in no unit with other modules");
  choose(0, wish.value_or(Wish()));
}

void Chooser::checkNothing(const Policy &policy, bool rootChosen) {
  if (rootChosen || !result.choices.empty() || policy.kind == Kind::none || policy.kind == Kind::annotations ||
      !status.ok())
    return;
  std::string message = "policy '" + policy.text + "' chooses no module: the whole model is one unit";
  if (policy.kind == Kind::bySize && tree.numModules() > 1) {
    size_t largest = 1;
    for (size_t i = 2; i < tree.numModules(); ++i)
      if (countElements(i, false) > countElements(largest, false))
        largest = i;
    message += "; the largest module, '" + tree.getModule(largest).path + "', has " +
               std::to_string(countElements(largest, false)) + " elements";
  }
  complain(policy.location, message);
}

//===----------------------------------------------------------------------===//
// Annotations, exempt classes
//===----------------------------------------------------------------------===//

void Chooser::useAnnotations() {
  result.isAnnotated = true;
  for (const Annotation &annotation : request.annotations) {
    Choice choice;
    choice.options = annotation.options;
    for (const std::string &path : annotation.modules) {
      const size_t *module = tree.findModule(path);
      if (!module)
        return fail("module '" + path + "' is annotated, and is not in the model");
      if (result.byModule[*module] >= 0)
        return fail("module '" + path + "' is annotated twice");
      if (ignoredModules[*module])
        return fail("module '" + path + "' is annotated as a unit, and to be ignored");
      result.byModule[*module] = static_cast<int64_t>(result.choices.size());
      choice.modules.push_back(*module);
    }
    for (const std::string &name : annotation.ignored) {
      const size_t *parameter = tree.findParameter(name);
      if (!parameter)
        return fail("ignored parameter '" + name + "' is not in the model");
      choice.ignored.push_back(*parameter);
    }
    result.choices.push_back(std::move(choice));
  }
  if (result.byModule[0] < 0)
    choose(0, {});
}

/// Exempt classes are left to exempt().
void Chooser::chooseByUse() {
  std::vector<bool> left = ignoredModules;
  for (size_t module = 0; module < tree.numModules(); ++module)
    left[module] = left[module] || (exempting && isExempt(module));
  for (std::vector<size_t> &modules : chooseUnitsByUse(tree, left, ignoredParameters)) {
    for (size_t module : modules)
      result.byModule[module] = static_cast<int64_t>(result.choices.size());
    result.choices.push_back({std::move(modules), {}, {}});
  }
  if (result.choices.empty())
    warnings.push_back("policy 'auto' finds no modules to cut the model at: the whole model is one unit");
  choose(0, {});
}

/// The modules beside the model that a policy has not made units itself.
void Chooser::addReached() {
  for (const Annotation &annotation : request.annotations)
    for (const std::string &path : annotation.modules) {
      const size_t *module = tree.findModule(path);
      if (module && result.byModule[*module] < 0 && !ignoredModules[*module])
        choose(*module, {annotation.options, nullptr});
    }
}

/// Where only some units have mixed precision, exempt classes inside those are units without it.
void Chooser::exempt() {
  for (size_t module = 0; module < tree.numModules(); ++module) {
    if (ignoredModules[module] || result.byModule[module] >= 0 || !isExempt(module))
      continue;
    UnitOptions options = result.choices[result.getInnermost(tree, module)].options;
    const std::optional<Precision> &around = options.precision ? options.precision : request.defaults.precision;
    if (!around || around->empty())
      continue;
    options.precision = Precision();
    choose(module, {options, nullptr});
  }
}

void Chooser::checkNested() {
  for (const Choice &choice : result.choices)
    for (size_t module : choice.modules)
      for (size_t below : tree.getSubtree(module))
        if (below != module && std::count(choice.modules.begin(), choice.modules.end(), below))
          return fail("modules of one unit lie in each other: '" + tree.getModule(below).path + "' in '" +
                      tree.getModule(module).path + "'");
}

size_t Choices::getInnermost(const ModuleTree &tree, size_t module) const {
  while (byModule[module] < 0)
    module = tree.getAncestor(module);
  return static_cast<size_t>(byModule[module]);
}

Expected<Choices> Chooser::run() {
  const Policy &policy = request.policy;
  result.byModule.assign(tree.numModules(), -1);
  exempting = request.defaults.precision && !request.defaults.precision->empty();
  bool isByUse = policy.kind == Kind::automatic, isOpen = isByUse || policy.kind == Kind::annotations;
  auto said = std::find_if(request.annotations.begin(), request.annotations.end(),
                           [](const Annotation &annotation) { return !annotation.reached; });
  if (said != request.annotations.end() && !isOpen)
    return Status::badInput("module '" + formatPath(said->modules.front()) +
                            "' is annotated as a unit already; a policy chooses for models without annotations");
  if (isByUse ? said != request.annotations.end() : isOpen && !request.annotations.empty()) {
    useAnnotations();
  } else if (isByUse) {
    chooseByUse();
    addReached();
  } else {
    Asked asked = prepare(policy);
    if (status.ok())
      walk(asked, 0);
    if (status.ok())
      chooseRoot(asked);
    addReached();
  }
  if (status.ok())
    exempt();
  if (status.ok())
    checkNested();
  if (!status.ok())
    return status;
  return std::move(result);
}

Expected<Choices> units::chooseModules(const ModuleTree &tree, const Request &request,
                                       const std::vector<bool> &ignoredModules,
                                       const std::vector<bool> &ignoredParameters, const Decide &decide,
                                       std::vector<std::string> &warnings) {
  return Chooser(tree, request, ignoredModules, ignoredParameters, decide, warnings).run();
}
