//===- AtenIndexing.h - Op classes of AtenIndexing.td -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENINDEXING_H
#define SPMD_DIALECTS_ATEN_ATENINDEXING_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenIndexing.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENINDEXING_H
