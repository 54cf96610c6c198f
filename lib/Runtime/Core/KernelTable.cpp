//===- KernelTable.cpp ----------------------------------------------------===//

#include "spmd/Runtime/Core/KernelTable.h"
#include "CertificateMemory.h"
#include "spmd/Runtime/Core/Hash.h"

#include <cstdio>
#include <set>
#include <sstream>

using namespace spmd::runtime;

/// What the line of a launch begins with; no symbol does.
static constexpr char kLaunch[] = "! ";
static constexpr char kComment[] = "//spmd ";
/// The header of a member of an archive (ar(5)): 16 characters of name, 32 of owner and time, 10 of size, 2 at the end.
static constexpr char kMember[] = "kernel_table/   ";
constexpr size_t kArchiveHead = 8, kMemberHead = 60, kMemberSize = 48;

/// "r:f32:2048", or "w:f32:2048:15/16" of rows of 15 elements, each at a multiple of 16. Text that is none gives bytes
/// that no reference has.
static KernelEntry::Argument parseArgument(const std::string &text) {
  size_t dtype = text.find(':'), bytes = text.find(':', dtype + 1);
  if (dtype == std::string::npos || bytes == std::string::npos)
    return {text, "", -1};
  KernelEntry::Argument argument{text.substr(0, dtype), text.substr(dtype + 1, bytes - dtype - 1),
                                 std::atoll(text.c_str() + bytes + 1)};
  size_t columns = text.find(':', bytes + 1), ld = text.find('/', columns);
  if (columns == std::string::npos)
    return argument;
  if (ld != std::string::npos) {
    argument.columns = std::atoll(text.c_str() + columns + 1);
    argument.ld = std::atoll(text.c_str() + ld + 1);
  }
  if (argument.columns <= 0 || argument.columns >= argument.ld)
    argument.bytes = -1;
  return argument;
}

KernelTable spmd::runtime::parseKernelTable(std::string_view table) {
  KernelTable kernels;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, std::size(kLaunch) - 1, kLaunch) == 0)
      continue;
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
    const auto *launched = command.as<KernelCommand>();
    if (!launched)
      continue;
    auto fail = [&](const std::string &message) {
      return certificateError(plan, static_cast<int32_t>(id), 9, message);
    };
    auto found = kernels.find(launched->symbol);
    if (found == kernels.end())
      return fail("the file of kernels has no '" + launched->symbol + "'");
    const KernelEntry &kernel = found->second;
    if (kernel.parallel != launched->parallel)
      return fail("has " + std::to_string(launched->parallel) + " iterations; the kernel was compiled for " +
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

static std::string formatUserLaunch(const UserLaunch &launch) {
  std::string text = " " + launch.function;
  for (const std::array<int64_t, 3> &sizes : {launch.grid, launch.block})
    for (int64_t size : sizes)
      text += " " + std::to_string(size);
  for (const LaunchParameter &parameter : launch.parameters)
    text += parameter.reference >= 0 ? " " + std::to_string(parameter.reference)
                                     : std::string(" ") + nameOf(parameter.dtype) + ":" + formatHash(parameter.bits);
  return text;
}

std::string spmd::runtime::formatLaunch(const KernelLaunch &launch) {
  std::string line = kLaunch + launch.kernel;
  for (int64_t number : {launch.blocks, launch.threads, launch.dynamicSharedBytes, launch.pointers, launch.coordinates,
                         launch.offset, launch.bytes})
    line += " " + std::to_string(number);
  return line + (launch.user ? formatUserLaunch(*launch.user) : "") + "\n";
}

std::string spmd::runtime::formatArchiveTable(std::string_view table) {
  char head[kMemberHead + 1];
  std::snprintf(head, sizeof head, "%s%-12d%-6d%-6d%-8d%-10zu`\n", kMember, 0, 0, 0, 644, table.size());
  return head + std::string(table) + (table.size() % 2 ? "\n" : "");
}

std::string spmd::runtime::findArchiveTable(std::string_view archive) {
  for (size_t at = kArchiveHead; at + kMemberHead <= archive.size();) {
    long long size = std::atoll(std::string(archive.substr(at + kMemberSize, 10)).c_str());
    size_t begin = at + kMemberHead;
    if (size < 0 || static_cast<size_t>(size) > archive.size() - begin)
      return "";
    if (archive.substr(at, std::size(kMember) - 1) == kMember)
      return std::string(archive.substr(begin, static_cast<size_t>(size)));
    at = begin + static_cast<size_t>(size + size % 2);
  }
  return "";
}

std::string spmd::runtime::formatPtxTable(std::string_view table) {
  std::string text;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);)
    text += kComment + line + "\n";
  return text;
}

std::string spmd::runtime::findPtxTable(std::string_view ptx) {
  std::string table;
  std::istringstream lines{std::string(ptx)};
  for (std::string line; std::getline(lines, line);)
    if (line.compare(0, std::size(kComment) - 1, kComment) == 0)
      table += line.substr(std::size(kComment) - 1) + "\n";
  return table;
}

Status spmd::runtime::checkLaunchTable(const std::vector<KernelLaunch> &launches, std::string_view chip,
                                       std::string_view table) {
  std::set<std::string> known;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);)
    known.insert(line + "\n");
  for (const KernelLaunch &launch : launches)
    if (std::string line = formatLaunch(launch); launch.chip == chip && !known.count(line))
      return Status::badInput("certificate rule 9: kernel '" + launch.kernel +
                              "' was not compiled for the launch that the "
                              "manifest has for " +
                              launch.chip + ": " + std::to_string(launch.blocks) + " blocks of " +
                              std::to_string(launch.threads) + " threads with " +
                              std::to_string(launch.dynamicSharedBytes) + " bytes of shared memory, " +
                              std::to_string(launch.pointers) + " pointers and " + std::to_string(launch.coordinates) +
                              " coordinates, from bytes [" + std::to_string(launch.offset) + ", " +
                              std::to_string(launch.offset + launch.bytes) + ") of the file");
  return Status::success();
}
