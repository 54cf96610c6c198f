//===- AtenOps.td - All ops of the aten dialect ------------*- tablegen -*-===//
//
// For what needs the dialect in one file: its declaration and the reference
// documentation. Op classes are generated group by group.
//
//===----------------------------------------------------------------------===//

include "dialects/Aten/AtenPointwise.td"
include "dialects/Aten/AtenCompare.td"
include "dialects/Aten/AtenMath.td"
include "dialects/Aten/AtenSpecial.td"
include "dialects/Aten/AtenBinary.td"
include "dialects/Aten/AtenActivation.td"
include "dialects/Aten/AtenLoss.td"
include "dialects/Aten/AtenView.td"
include "dialects/Aten/AtenReduce.td"
include "dialects/Aten/AtenHeavy.td"
include "dialects/Aten/AtenIndexing.td"
include "dialects/Aten/AtenOptim.td"
include "dialects/Aten/AtenNorm.td"
include "dialects/Aten/AtenRandom.td"
include "dialects/Aten/AtenRanks.td"
include "dialects/Aten/AtenWindow.td"
