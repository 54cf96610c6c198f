//===- AtenHeavy.h - Op classes of AtenHeavy.td -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENHEAVY_H
#define SPMD_DIALECTS_ATEN_ATENHEAVY_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenHeavy.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENHEAVY_H
