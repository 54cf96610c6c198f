//===- AtenCompare.h - Op classes of AtenCompare.td -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENCOMPARE_H
#define SPMD_DIALECTS_ATEN_ATENCOMPARE_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenCompare.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENCOMPARE_H
