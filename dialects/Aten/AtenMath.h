//===- AtenMath.h - Op classes of AtenMath.td -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENMATH_H
#define SPMD_DIALECTS_ATEN_ATENMATH_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenMath.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENMATH_H
