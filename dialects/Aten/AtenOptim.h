//===- AtenOptim.h - Op classes of AtenOptim.td -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENOPTIM_H
#define SPMD_DIALECTS_ATEN_ATENOPTIM_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenOptim.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENOPTIM_H
