//===- AtenActivation.h - Op classes of AtenActivation.td -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENACTIVATION_H
#define SPMD_DIALECTS_ATEN_ATENACTIVATION_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenActivation.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENACTIVATION_H
