//===- AtenSpecial.h - Op classes of AtenSpecial.td -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENSPECIAL_H
#define SPMD_DIALECTS_ATEN_ATENSPECIAL_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenSpecial.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENSPECIAL_H
