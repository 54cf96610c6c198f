//===- AtenView.h - Op classes of AtenView.td -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENVIEW_H
#define SPMD_DIALECTS_ATEN_ATENVIEW_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenView.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENVIEW_H
