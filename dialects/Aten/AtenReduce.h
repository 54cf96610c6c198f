//===- AtenReduce.h - Op classes of AtenReduce.td -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENREDUCE_H
#define SPMD_DIALECTS_ATEN_ATENREDUCE_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenReduce.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENREDUCE_H
