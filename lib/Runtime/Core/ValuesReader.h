//===- ValuesReader.h - The JSON form of the table of values ------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_VALUESREADER_H
#define SPMD_RUNTIME_CORE_VALUESREADER_H

#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Values.h"

namespace spmd::runtime {

/// One line of the table. What it says of other lines is not checked.
ValueEntry readValueEntry(JsonValue value);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_VALUESREADER_H
