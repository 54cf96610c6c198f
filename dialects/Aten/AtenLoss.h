//===- AtenLoss.h - Op classes of AtenLoss.td -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENLOSS_H
#define SPMD_DIALECTS_ATEN_ATENLOSS_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenLoss.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENLOSS_H
