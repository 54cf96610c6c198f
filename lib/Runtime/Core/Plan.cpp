//===- Plan.cpp -----------------------------------------------------------===//

#include "spmd/Runtime/Core/Plan.h"

#include <cstdio>

using namespace spmd::runtime;

bool Ref::dependsOnRank() const {
  for (int64_t factor : coord)
    if (factor != 0)
      return true;
  return false;
}

int64_t Ref::offsetAt(const std::vector<int64_t> &coordinates) const {
  int64_t result = offset;
  for (size_t axis = 0; axis < coord.size(); ++axis)
    result += coord[axis] * coordinates[axis];
  return result;
}

const char *spmd::runtime::nameOf(Access access) {
  return access == Access::Read ? "r" : access == Access::Write ? "w" : "rw";
}

const char *spmd::runtime::nameOf(CommandKind kind) {
  switch (kind) {
  case CommandKind::Kernel:
    return "kernel";
  case CommandKind::Gemm:
    return "gemm";
  case CommandKind::AllGather:
    return "all_gather";
  case CommandKind::ReduceScatter:
    return "reduce_scatter";
  case CommandKind::AllReduce:
    return "all_reduce";
  case CommandKind::Wait:
    return "wait";
  case CommandKind::Copy:
    return "copy";
  case CommandKind::Fill:
    return "fill";
  case CommandKind::CheckIndex:
    return "check_index";
  }
  return "";
}

const char *spmd::runtime::nameOf(Activation activation) {
  switch (activation) {
  case Activation::None:
    return "none";
  case Activation::Relu:
    return "relu";
  case Activation::Gelu:
    return "gelu";
  case Activation::GeluTanh:
    return "gelu_tanh";
  }
  return "";
}

const char *spmd::runtime::nameOf(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum:
    return "sum";
  case ReductionKind::Max:
    return "max";
  case ReductionKind::Min:
    return "min";
  case ReductionKind::Norm2:
    return "norm2";
  }
  return "";
}

std::optional<ReductionKind> spmd::runtime::parseReductionKind(std::string_view name) {
  for (ReductionKind kind : {ReductionKind::Sum, ReductionKind::Max, ReductionKind::Min, ReductionKind::Norm2})
    if (name == nameOf(kind))
      return kind;
  return std::nullopt;
}

std::optional<Activation> spmd::runtime::parseActivation(std::string_view name) {
  for (Activation activation : {Activation::Relu, Activation::Gelu, Activation::GeluTanh})
    if (name == nameOf(activation))
      return activation;
  return std::nullopt;
}

std::string Command::describe() const {
  std::string text = nameOf(kind);
  if (kind == CommandKind::Kernel)
    return text + " " + kernel;
  if (kind == CommandKind::Wait)
    return text + " for command " + std::to_string(waitFor);
  if (!unit.empty())
    return text + " of " + unit;
  return text;
}

int64_t Command::messageBytes() const {
  int64_t elements = 0;
  for (int64_t count : counts)
    elements += count;
  return elements * sizeOf(dtype);
}

int64_t Command::sentBytes() const {
  return kind == CommandKind::ReduceScatter ? refs[0].bytes : messageBytes();
}

const std::vector<std::string> &Plan::axesOf(int32_t communicator) const {
  static const std::vector<std::string> none;
  auto found = axes.find(communicators[static_cast<size_t>(communicator)]);
  return found == axes.end() ? none : found->second;
}

std::string spmd::runtime::collectiveTrace(const Plan &plan) {
  std::string trace;
  for (const auto &[name, axes] : plan.axes) {
    trace += name;
    for (const std::string &axis : axes)
      trace += (&axis == &axes.front() ? " " : ",") + axis;
    trace += "\n";
  }
  for (const Command &command : plan.commands) {
    if (!command.isCollective())
      continue;
    std::string counts, kinds;
    for (int64_t count : command.counts)
      counts += (counts.empty() ? "" : ",") + std::to_string(count);
    for (ReductionKind kind : command.kinds)
      kinds += (kinds.empty() ? "" : ",") + std::string(nameOf(kind));
    auto orDash = [](const std::string &text) { return text.empty() ? std::string("-") : text; };
    trace += plan.communicators[static_cast<size_t>(command.communicator)] + " " + nameOf(command.kind) + " " +
             nameOf(command.dtype) + " " + orDash(counts) + " " + orDash(kinds) + " " + orDash(command.unit) + "\n";
  }
  return trace;
}
