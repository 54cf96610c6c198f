//===- UnitsByUse.h - the policy `auto` -------------------------*- C++ -*-===//
//
// [Note: units by use]
// A unit is gathered before its first use and freed after its last, so what is used together should be a unit, and
// nothing that is used elsewhere. The policy `auto` takes pieces of the module tree, and joins small ones:
//
// - The members of a container (ModuleList, ModuleDict, Sequential) are pieces: the blocks of a network. A member that
//   is a quarter of the model and has a container of four pieces itself is a stage, and its blocks are the pieces.
// - Outside of containers a module without a container below is a piece: an embedding, a norm, a head.
// - Pieces that share a parameter are one, which no other piece joins: it is used at both ends of the step.
// - A piece with less than an eighth of the mean piece's bytes joins the next one in the order of use, the last one
//   the one before. Frozen and trainable pieces do not join.
// - Parameters of modules that contain pieces, and of modules that several pieces share, stay with the root.
//
// Blocks are not joined, however many ranks there are: modelled plans of Llama-3-8B and GPT-2 124M on 8 to 512 ranks
// gain at most 0.9 % by units of several blocks, and lose up to 4 % (benchmark/plan_units.py).
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_SHARDUNITS_UNITSBYUSE_H
#define SPMD_LIB_SHARDUNITS_UNITSBYUSE_H

#include "spmd/ShardUnits/ModuleTree.h"

namespace spmd::units {

/// The modules of each unit but the root, in the order of use. What is ignored, by number, is in none.
std::vector<std::vector<size_t>> chooseUnitsByUse(const ModuleTree &tree, const std::vector<bool> &ignoredModules,
                                                  const std::vector<bool> &ignoredParameters);

} // namespace spmd::units

#endif // SPMD_LIB_SHARDUNITS_UNITSBYUSE_H
