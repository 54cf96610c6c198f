//===- AtenDialect.h - The aten dialect -------------------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENDIALECT_H
#define SPMD_DIALECTS_ATEN_ATENDIALECT_H

#include "dialects/Aten/AtenInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Aten/AtenDialect.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENDIALECT_H
