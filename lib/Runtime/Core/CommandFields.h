//===- CommandFields.h - JSON that plans and tables of values share -*- C++ -*-===//
//
// What a command of a plan and an operation of the table of values have in common is written and read once.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_CORE_COMMANDFIELDS_H
#define SPMD_LIB_RUNTIME_CORE_COMMANDFIELDS_H

#include "JsonWriter.h"
#include "spmd/Runtime/Core/Command.h"
#include "spmd/Runtime/Core/Repeats.h"

namespace spmd::runtime {

/// All but the activation, which is there only where there is one.
void writeGemmSizes(JsonWriter &json, const GemmSizes &sizes);
void writeActivation(JsonWriter &json, Activation activation);
void writeBiasGradientOf(JsonWriter &json, GemmOperand operand);
/// All of it; that it is backward is said by who has it.
void writeAttentionShape(JsonWriter &json, const AttentionShape &shape);
void writeExchange(JsonWriter &json, const Exchange &exchange);
void writeCheckIndex(JsonWriter &json, const CheckIndexCommand &check);
/// As a member `repeats`, if there are any.
void writeRepeats(JsonWriter &json, const std::optional<Repeats> &repeats);

void readGemmSizes(JsonValue value, GemmSizes &sizes);
DType readGemmDType(JsonValue value);
Activation readActivation(JsonValue value);
GemmOperand readBiasGradientOf(JsonValue value);
/// Backward or not is known.
void readAttentionShape(JsonValue value, AttentionShape &shape);
/// Of the exchange's kind, which is known.
void readExchange(JsonValue value, Exchange &exchange);
void readCheckIndex(JsonValue value, CheckIndexCommand &check);
/// The member `repeats` of `value`, if it has one.
std::optional<Repeats> readRepeats(JsonValue value);
/// "r", "w" or "rw".
Access readAccess(JsonValue value);

/// "sum, max, min or norm2".
template <typename Kind, size_t N>
std::string joinChoices(const Kind (&kinds)[N]) {
  std::string text;
  for (size_t i = 0; i < N; ++i)
    text += (i == 0 ? "" : i + 1 < N ? ", " : " or ") + std::string(nameOf(kinds[i]));
  return text;
}

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_CORE_COMMANDFIELDS_H
