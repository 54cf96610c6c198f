//===- AtenBinary.h - Op classes of AtenBinary.td -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENBINARY_H
#define SPMD_DIALECTS_ATEN_ATENBINARY_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenBinary.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENBINARY_H
