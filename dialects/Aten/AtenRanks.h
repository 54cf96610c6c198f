//===- AtenRanks.h - Op classes of AtenRanks.td -----------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENRANKS_H
#define SPMD_DIALECTS_ATEN_ATENRANKS_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenRanks.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENRANKS_H
