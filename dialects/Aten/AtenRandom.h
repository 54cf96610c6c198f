//===- AtenRandom.h - Op classes of AtenRandom.td -----------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENRANDOM_H
#define SPMD_DIALECTS_ATEN_ATENRANDOM_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenRandom.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENRANDOM_H
