//===- AtenWindow.h - Op classes of AtenWindow.td -------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ATENWINDOW_H
#define SPMD_DIALECTS_ATEN_ATENWINDOW_H

#include "dialects/Aten/AtenDialect.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenWindow.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENWINDOW_H
