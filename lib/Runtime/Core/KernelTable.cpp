//===- KernelTable.cpp ----------------------------------------------------===//

#include "spmd/Runtime/Core/KernelTable.h"
#include "CertificateMemory.h"

#include <sstream>

using namespace spmd::runtime;

/// "r:f32:2048". Text that is none gives bytes that no reference has.
static KernelEntry::Argument parseArgument(const std::string &text) {
  size_t first = text.find(':'), last = text.rfind(':');
  if (first == std::string::npos || first == last)
    return {text, "", -1};
  return {text.substr(0, first), text.substr(first + 1, last - first - 1), std::atoll(text.c_str() + last + 1)};
}

KernelTable spmd::runtime::parseKernelTable(std::string_view table) {
  KernelTable kernels;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string symbol, argument;
    KernelEntry entry;
    words >> symbol >> entry.parallel;
    while (words >> argument)
      entry.arguments.push_back(parseArgument(argument));
    kernels.emplace(std::move(symbol), std::move(entry));
  }
  return kernels;
}

Status spmd::runtime::checkKernelTable(const Plan &plan, std::string_view table) {
  KernelTable kernels = parseKernelTable(table);
  for (size_t id = 0; id < plan.commands.size(); ++id) {
    const Command &command = plan.commands[id];
    if (command.kind != CommandKind::Kernel)
      continue;
    auto fail = [&](const std::string &message) {
      return certificateError(plan, static_cast<int32_t>(id), 9, message);
    };
    auto found = kernels.find(command.kernel);
    if (found == kernels.end())
      return fail("the file of kernels has no '" + command.kernel + "'");
    const KernelEntry &kernel = found->second;
    if (kernel.parallel != command.parallel)
      return fail("has " + std::to_string(command.parallel) + " iterations; the kernel was compiled for " +
                  std::to_string(kernel.parallel));
    if (kernel.arguments.size() != command.refs.size())
      return fail("has " + std::to_string(command.refs.size()) + " arguments; the kernel takes " +
                  std::to_string(kernel.arguments.size()));
    for (size_t i = 0; i < command.refs.size(); ++i) {
      const Ref &ref = command.refs[i];
      const KernelEntry::Argument &argument = kernel.arguments[i];
      if (argument.bytes != ref.bytes || argument.access != nameOf(ref.access))
        return fail("argument " + std::to_string(i) + " is " + nameOf(ref.access) + " of " + std::to_string(ref.bytes) +
                    " bytes; the kernel takes " + argument.access + " of " + std::to_string(argument.bytes) +
                    " bytes of " + argument.dtype);
    }
  }
  return Status::success();
}
