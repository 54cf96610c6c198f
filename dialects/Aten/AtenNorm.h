//===- AtenNorm.h - Op classes of AtenNorm.td -----------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENNORM_H
#define SPMD_DIALECTS_ATEN_ATENNORM_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenNorm.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENNORM_H
