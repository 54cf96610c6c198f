//===- CompilerOptions.cpp - What a step is compiled to -------------------===//

#include "spmd/Compiler/CompilerOptions.h"
#include "spmd/Kernels/SharedObject.h"
#include "spmd/Runtime/Core/Cpu.h"
#include "spmd/ShardUnits/Policy.h"
#include "llvm/ADT/StringExtras.h"
#include <cstdlib>

using namespace llvm;
using namespace spmd;

namespace {

/// Keeps the first problem; everything after it is not looked at.
class Checker {
public:
  bool fail(const Twine &message) {
    problem = message.str();
    return false;
  }
  bool oneOf(StringRef option, StringRef value, ArrayRef<StringRef> allowed) {
    if (is_contained(allowed, value))
      return true;
    return fail("--" + option + "=" + value + ": expected " + join(allowed, ", "));
  }
  bool phase(StringRef option, StringRef value, Phase &phase) {
    SmallVector<StringRef> names;
    for (Phase known : getPhases())
      names.push_back(getPhaseName(known));
    if (!oneOf(option, value, names))
      return false;
    phase = *findPhase(value);
    return true;
  }
  bool target(StringRef text, std::shared_ptr<const Target> &target);
  bool policy(ArrayRef<std::string> values, std::string &policy);
  bool batchDim(StringRef text, std::vector<std::pair<std::string, int64_t>> &dims);
  bool after(StringRef text, CompilerOptions &options);
  bool size(StringRef text, std::optional<int64_t> &bytes);
  bool pipeline(const OptionTexts &texts, CompilerOptions &options);
  bool cpus(StringRef option, ArrayRef<StringRef> names, std::vector<std::string> &cpus);
  bool all(const OptionTexts &texts, CompilerOptions &options);

  std::string problem;
};

} // namespace

bool Checker::target(StringRef text, std::shared_ptr<const Target> &target) {
  std::string problem;
  target = parseTarget(text, problem);
  return target || fail("--target=" + text + ": " + problem);
}

bool Checker::cpus(StringRef option, ArrayRef<StringRef> names, std::vector<std::string> &cpus) {
  for (StringRef cpu : names) {
    if (cpu == "native") {
      cpu = runtime::getNativeCpu();
      if (cpu.empty())
        return fail(option + "=native: this processor runs none of " + join(kernel::getKernelCpus(), ", "));
    }
    if (!is_contained(kernel::getKernelCpus(), cpu))
      return fail(option + "=" + cpu + ": expected native, " + join(kernel::getKernelCpus(), ", "));
    cpus.push_back(cpu.str());
  }
  return true;
}

bool Checker::policy(ArrayRef<std::string> values, std::string &policy) {
  if (values.empty())
    return true;
  // Each by itself first, so that a position counts from its beginning.
  for (const std::string &value : values)
    if (auto parsed = units::parsePolicy(value); !parsed)
      return fail("--policy: " + parsed.error().message);
  policy = values.size() == 1 ? values.front() : "or(" + join(values, ";") + ")";
  if (auto parsed = units::parsePolicy(policy); !parsed)
    return fail("--policy: " + parsed.error().message);
  return true;
}

bool Checker::batchDim(StringRef text, std::vector<std::pair<std::string, int64_t>> &dims) {
  auto [name, number] = text.split('=');
  int64_t dim = -1;
  if (name.empty() || (number != "none" && (number.getAsInteger(10, dim) || dim < 0)))
    return fail("--batch-dim=" + text + ": expected NAME=DIM, such as x=0, or x=none");
  dims.emplace_back(name.str(), dim);
  return true;
}

bool Checker::after(StringRef text, CompilerOptions &options) {
  auto [name, passes] = text.split(':');
  Phase phase;
  if (!this->phase("pipeline-after", name, phase))
    return false;
  if (phase == Phase::artifact)
    return fail("--pipeline-after=" + text + ": an artifact is no IR; the last phase that passes can follow is plan");
  if (phase > options.to)
    return fail("--pipeline-after=" + text + ": --compile-to=" + getPhaseName(options.to) + " ends before");
  if (options.resumes && phase <= options.from)
    return fail("--pipeline-after=" + text + ": --compile-from=" + getPhaseName(options.from) + " begins behind it");
  options.pipeline.after.emplace_back(phase, passes.str());
  return true;
}

bool Checker::size(StringRef text, std::optional<int64_t> &bytes) {
  static constexpr std::pair<StringLiteral, int64_t> units[] = {
      {"kB", 1000},     {"MB", 1000000},  {"GB", 1000000000}, {"KiB", int64_t(1) << 10},
      {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1},           {"", 1}};
  double number;
  for (auto [unit, factor] : units) {
    StringRef digits = text;
    if (digits.consume_back(unit) && !digits.rtrim().getAsDouble(number) && number >= 0 && number < 1e18 / factor) {
      bytes = static_cast<int64_t>(number * factor);
      return true;
    }
  }
  return fail("--memory-budget=" + text + ": expected bytes, such as 2000000000, 2GB or 1.5GiB");
}

bool Checker::pipeline(const OptionTexts &texts, CompilerOptions &options) {
  PipelineOptions &pipeline = options.pipeline;
  pipeline = texts.pipeline;
  pipeline.policyFile = texts.policyFile;
  pipeline.ignoredModules = texts.ignoredModules;
  pipeline.ignoredParameters = texts.ignoredParameters;
  pipeline.strictTied = texts.strictTied;
  if (!policy(texts.policies, pipeline.policy) || !target(texts.target, options.target))
    return false;
  options.target->configure(pipeline);
  return true;
}

bool Checker::all(const OptionTexts &texts, CompilerOptions &options) {
  options.input = texts.input;
  options.output = texts.output;
  options.code.cuda.toolkit = texts.cuda;
  options.code.emulation = texts.emulation;
  if (texts.kernelCache != "none")
    options.code.cuda.cache = texts.kernelCache.empty() ? kernel::getUserKernelCache() : texts.kernelCache;
  options.dumpFolder = texts.dumpFolder;
  options.code.libraries = texts.libraries;
  options.timing = texts.timing;
  options.quiet = texts.quiet;
  options.plugins = texts.plugins;
  options.passPlugins = texts.passPlugins;
  if (texts.json)
    options.json = texts.json->empty() ? "-" : *texts.json;
  options.remarks = texts.remarks;
  options.noBudgetTrades = texts.noBudgetTrades;
  options.resumes = !texts.from.empty();
  if (!pipeline(texts, options))
    return false;
  for (StringRef dim : texts.batchDims)
    if (!batchDim(dim, options.batchDims))
      return false;
  SmallVector<StringRef> named(texts.cpus.begin(), texts.cpus.end()), usual;
  if (const char *given = std::getenv("SPMD_CPU"))
    StringRef(given).split(usual, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  if (!cpus("--cpu", named, options.code.cpus) || !cpus("SPMD_CPU", usual, options.code.usualCpus))
    return false;
  if (std::string bad = findBadOption(options.pipeline); !bad.empty())
    return fail("--" + bad);
  bool valid = phase("compile-to", texts.to, options.to) &&
               (!options.resumes || phase("compile-from", texts.from, options.from)) &&
               (texts.budget.empty() || size(texts.budget, options.memoryBudget));
  if (!valid || !all_of(texts.after, [&](StringRef text) { return after(text, options); }))
    return false;
  if (std::string bad = options.target->findBadOption(options.code, texts.target); !bad.empty())
    return fail(bad);
  if (options.to == Phase::artifact)
    if (std::string missing = options.target->findMissingTool(options.code); !missing.empty())
      return fail("--target=" + texts.target + ": " + missing);
  if (!texts.policies.empty() && !texts.policyFile.empty())
    return fail("--policy and --policy-file exclude each other");
  if (options.input.empty())
    return fail("no step package given; usage: spmd-compile STEP -o ARTIFACT [options]");
  if (options.to == Phase::artifact && options.output.empty())
    return fail("no -o ARTIFACT given");
  if (options.json && options.to < Phase::plan)
    return fail("--json is the report of a plan; --compile-to=" + texts.to + " has none");
  if (options.resumes && options.from >= options.to)
    return fail("--compile-from=" + texts.from + " is not before --compile-to=" + texts.to);
  return true;
}

std::optional<std::string> spmd::checkPipelineOptions(const OptionTexts &texts, CompilerOptions &options) {
  Checker check;
  return check.pipeline(texts, options) ? std::nullopt : std::optional(check.problem);
}

std::optional<std::string> spmd::checkOptions(const OptionTexts &texts, CompilerOptions &options) {
  Checker check;
  return check.all(texts, options) ? std::nullopt : std::optional(check.problem);
}

/// Sets a value by what is written behind the option's name, or by its name alone (null). Returns what is expected when
/// that is none.
static StringRef assign(const OptionInfo &info, std::optional<StringRef> text, std::string &value) {
  // Of an option with a default what is expected is said where values are checked.
  if (!text || (text->empty() && value.empty() && !info.mayBeEmpty))
    return "a value";
  value = text->str();
  return "";
}

static StringRef assign(const OptionInfo &, std::optional<StringRef> text, std::optional<std::string> &value) {
  value = text.value_or("").str();
  return "";
}

static StringRef assign(const OptionInfo &, std::optional<StringRef> text, bool &value) {
  if (text && text != "true" && text != "false")
    return "true, false";
  value = text != "false";
  return "";
}

static StringRef assign(const OptionInfo &, std::optional<StringRef> text, int64_t &value) {
  return !text || text->getAsInteger(10, value) ? "a whole number" : "";
}

static StringRef assign(const OptionInfo &info, std::optional<StringRef> text, std::vector<std::string> &value) {
  if (!text)
    return "a value";
  SmallVector<StringRef> parts = {*text};
  if (info.isCommaSeparated) {
    parts.clear();
    text->split(parts, ',');
  }
  for (StringRef part : parts)
    value.push_back(part.str());
  return "";
}

std::optional<std::string> spmd::setOption(OptionTexts &texts, StringRef word) {
  StringRef name = word;
  if (!name.consume_front("--"))
    return ("'" + word + "': expected --NAME or --NAME=VALUE").str();
  std::optional<StringRef> text;
  if (size_t at = name.find('='); at != StringRef::npos) {
    text = name.substr(at + 1);
    name = name.take_front(at);
  }
  std::optional<std::string> expected;
  std::string nearest;
  unsigned least = ~0u;
  forEachOption(texts, [&](const OptionInfo &info, auto &value) {
    unsigned distance = name.edit_distance(info.name);
    if (distance < least) {
      least = distance;
      nearest = info.name.str();
    }
    if (distance == 0)
      expected = assign(info, text, value).str();
    if (distance == 0 && text && text->empty() && *expected == "a value")
      *expected += " (" + info.help.str() + ")";
  });
  if (!expected)
    return ("--" + name + ": there is no such option; the closest is --" + nearest).str();
  if (!expected->empty())
    return (word + ": expected " + *expected).str();
  return std::nullopt;
}
