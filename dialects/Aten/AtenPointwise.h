//===- AtenPointwise.h - Op classes of AtenPointwise.td -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENPOINTWISE_H
#define SPMD_DIALECTS_ATEN_ATENPOINTWISE_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenPointwise.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENPOINTWISE_H
