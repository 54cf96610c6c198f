//===- SpmdOps.td - all operations of the dialect ------------*- tablegen -*-===//

#ifndef SPMD_OPS_TD
#define SPMD_OPS_TD

include "dialects/Spmd/SpmdCollectiveOps.td"
include "dialects/Spmd/SpmdSymbolOps.td"
include "dialects/Spmd/SpmdUnitOps.td"

#endif // SPMD_OPS_TD
