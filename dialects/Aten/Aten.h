//===- Aten.h - The whole aten dialect --------------------------*- C++ -*-===//
//
// All op classes. Slow to compile: include the header of a group, or only
// AtenInterfaces.h, where that is enough.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_ATEN_ATEN_H
#define SPMD_DIALECTS_ATEN_ATEN_H

#include "dialects/Aten/AtenActivation.h"
#include "dialects/Aten/AtenBinary.h"
#include "dialects/Aten/AtenCompare.h"
#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenLoss.h"
#include "dialects/Aten/AtenMath.h"
#include "dialects/Aten/AtenIndexing.h"
#include "dialects/Aten/AtenNorm.h"
#include "dialects/Aten/AtenOptim.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenRandom.h"
#include "dialects/Aten/AtenRanks.h"
#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/AtenSpecial.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/AtenWindow.h"

#endif // SPMD_DIALECTS_ATEN_ATEN_H
