//===- Nvtx.cpp -----------------------------------------------------------===//

#include "Nvtx.h"
#include "spmd/Runtime/Core/Text.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>

namespace spmd::runtime::cuda {

/// The tables that a profiler's library fills in, which asks for them through plain functions.
struct Injection {
  std::array<std::vector<nvtx::Function>, nvtx::kModules> functions;
  std::array<std::vector<nvtx::Function *>, nvtx::kModules> places;

  static Injection &get() {
    static Injection only;
    return only;
  }

  Injection() {
    for (int module = nvtx::kCore; module < nvtx::kModules; ++module) {
      auto at = static_cast<size_t>(module);
      functions[at].resize(nvtx::kFunctionsOf[module]);
      places[at].push_back(nullptr);
      for (size_t i = 1; i < functions[at].size(); ++i)
        places[at].push_back(&functions[at][i]);
    }
  }

  static int getModuleFunctionTable(int module, nvtx::FunctionTable *table, unsigned *count) {
    if (module < nvtx::kCore || module >= nvtx::kModules)
      return 0;
    if (table)
      *table = get().places[static_cast<size_t>(module)].data();
    if (count)
      *count = nvtx::kFunctionsOf[module];
    return 1;
  }

  static const void *getExportTable(uint32_t id) {
    static const nvtx::CallbacksTable callbacks = {sizeof callbacks, getModuleFunctionTable};
    static const nvtx::VersionTable version = {sizeof version, nvtx::kVersion, 0, [](uint32_t) {}};
    return id == nvtx::kCallbacksTable ? static_cast<const void *>(&callbacks)
           : id == nvtx::kVersionTable ? &version
                                       : nullptr;
  }

  template <typename F>
  static F take(unsigned number) {
    return reinterpret_cast<F>(get().functions[nvtx::kCore2][number]);
  }

  /// Loads the library that the environment names. One that cannot be used is as none, as in other programs.
  static const Profiler *attach() {
    const char *path = std::getenv(nvtx::kLibraryVariable);
    void *library = path && *path ? ::dlopen(path, RTLD_LAZY) : nullptr;
    void *symbol = library ? ::dlsym(library, nvtx::kInitialize) : nullptr;
    if (!symbol || !reinterpret_cast<int (*)(nvtx::ExportTable)>(symbol)(getExportTable))
      return nullptr;
    static Profiler profiler;
    profiler.rangePush = take<nvtx::RangePush>(nvtx::kRangePush);
    profiler.rangePop = take<nvtx::RangePop>(nvtx::kRangePop);
    profiler.registerString = take<nvtx::RegisterString>(nvtx::kRegisterString);
    auto createDomain = take<nvtx::CreateDomain>(nvtx::kCreateDomain);
    if (!profiler.rangePush || !profiler.rangePop || !profiler.registerString || !createDomain)
      return nullptr;
    profiler.domain = createDomain("spmd");
    return &profiler;
  }
};

const Profiler *Profiler::attached() {
  static const Profiler *profiler = Injection::attach();
  return profiler;
}

nvtx::String Profiler::registerText(const std::string &text) const { return registerString(domain, text.c_str()); }

void Profiler::push(nvtx::String text) const {
  nvtx::EventAttributes attributes;
  attributes.textType = nvtx::kRegisteredText;
  attributes.text.registered = text;
  (void)rangePush(domain, &attributes);
}

void Profiler::pop() const { (void)rangePop(domain); }

std::vector<int32_t> findUnits(const Manifest &manifest, const Plan &plan) {
  auto numberOf = [&](const std::string &name) {
    const Unit *unit = name.empty() ? nullptr : manifest.findUnit(name);
    return unit ? static_cast<int32_t>(unit - manifest.units.data()) : -1;
  };
  std::vector<int32_t> unitOf(plan.buffers.size(), -1);
  for (const StateEntry &entry : manifest.state)
    for (const Buffer &buffer : plan.buffers)
      if (buffer.state && buffer.offset <= entry.offset && entry.offset < buffer.offset + buffer.bytes)
        unitOf[static_cast<size_t>(buffer.id)] = numberOf(entry.unit);
  for (const Command &command : plan.commands)
    if (const auto *collective = command.as<CollectiveCommand>(); collective && !collective->unit.empty())
      for (const Ref &ref : command.refs)
        unitOf[static_cast<size_t>(ref.buffer)] = numberOf(collective->unit);

  std::vector<int32_t> units(plan.commands.size(), -1);
  std::vector<int32_t> before(plan.streams.size(), -1);
  for (size_t id = 0; id < units.size(); ++id) {
    int32_t &unit = before[static_cast<size_t>(plan.commands[id].stream)];
    for (const Ref &ref : plan.commands[id].refs)
      if (int32_t touched = unitOf[static_cast<size_t>(ref.buffer)]; touched >= 0) {
        unit = touched;
        break;
      }
    units[id] = unit;
  }
  return units;
}

/// What people call a unit: its modules, where they have names.
static std::string describe(const Unit &unit) { return unit.modules.empty() ? unit.name : joinNames(unit.modules); }

PlanRanges::PlanRanges(const Profiler *profiler, const Manifest &manifest, const Plan &plan)
    : profiler(profiler), units(plan.commands.size()), collectives(plan.commands.size()) {
  if (!profiler)
    return;
  step = profiler->registerText("step of " + manifest.step);
  std::vector<nvtx::String> texts;
  for (const Unit &unit : manifest.units)
    texts.push_back(profiler->registerText(describe(unit)));
  std::vector<int32_t> found = findUnits(manifest, plan);
  for (size_t id = 0; id < found.size(); ++id) {
    const auto *collective = plan.commands[id].as<CollectiveCommand>();
    if (!collective) {
      units[id] = plan.commands[id].stream == 0 && found[id] >= 0 ? texts[static_cast<size_t>(found[id])] : nullptr;
      continue;
    }
    const Unit *unit = manifest.findUnit(collective->unit);
    collectives[id] =
        profiler->registerText(nameOf(collective->kind) + (unit ? " of " + describe(*unit) : std::string()));
  }
}

} // namespace spmd::runtime::cuda
