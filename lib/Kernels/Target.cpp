//===- Target.cpp - what code is generated for ----------------------------===//

#include "spmd/Kernels/Target.h"
#include "Gpu/Device.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace spmd::kernel {

StringRef getTargetName(Target::Kind kind) {
  switch (kind) {
  case Target::Kind::host:
    return "host";
  case Target::Kind::cuda:
    return "cuda";
  case Target::Kind::emulate:
    return "emulate";
  }
  llvm_unreachable("unknown target");
}

GemmEpilogues getGemmEpilogues(Target::Kind kind) {
  // cuBLASLt: BIAS, RELU_BIAS, GELU_AUX_BIAS (by tanh), and C beside D.
  if (kind == Target::Kind::cuda)
    return {"bias,residual,relu,gelu_tanh", "f32,bf16"};
  // Our own products of f32, which an emulated artifact has too, add biases and sums.
  return {"bias,residual", "f32"};
}

int64_t getReductionBlocks(const Target &target) {
  int64_t blocks = 0;
  for (const std::string &chip : target.chips)
    blocks = std::max(blocks, 2 * findDevice(chip)->sms);
  return blocks ? blocks : 64;
}

std::string Target::getText() const {
  std::string text = getTargetName(kind).str();
  return chips.empty() ? text : text + ":" + join(chips, ",");
}

std::optional<Target> parseTarget(StringRef text, std::string &error) {
  SmallVector<StringRef> known = getKernelChips();
  auto fail = [&](const Twine &expected) {
    error = (expected + "; chips are " + join(known, ", ")).str();
    return std::nullopt;
  };
  if (text == "host")
    return Target{};
  auto [name, list] = text.split(':');
  Target target;
  if (name == "cuda")
    target.kind = Target::Kind::cuda;
  else if (name == "emulate")
    target.kind = Target::Kind::emulate;
  else
    return fail("expected host, cuda:CHIP[,CHIP...] or emulate:CHIP");
  SmallVector<StringRef> given;
  list.split(given, ',');
  for (StringRef chip : given)
    if (!is_contained(known, chip))
      return fail(chip.empty() ? "expected " + name + ":CHIP" : "unknown chip '" + chip + "'");
  if (target.kind == Target::Kind::emulate && given.size() > 1)
    return fail("expected one chip to emulate, found " + Twine(given.size()));
  for (StringRef chip : known)
    if (is_contained(given, chip))
      target.chips.push_back(chip.str());
  return target;
}

} // namespace spmd::kernel
