//===- AtenCustomCall.h - Sharding of operators of the user's -----*- C++ -*-===//
//
// How the dimensions of an operator's tensors correspond, as a line of text: an entry for each tensor argument, an
// arrow, and an entry for each result. An entry names its dimensions, separated by spaces; "_" is one that every rank
// needs whole. A name stands for one loop, over a dimension of the same size wherever it appears; a result that lacks
// it combines what the ranks have, as `reduce` says. "..." stands for the same leading dimensions, any number of them,
// in every entry that has it.
//
//     "... d, d -> ... d"      a scale for each column
//     "b d, b d -> d"          a sum over rows, with reduce {"sum"}
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_ATEN_ATENCUSTOMCALL_H
#define SPMD_DIALECTS_ATEN_ATENCUSTOMCALL_H

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/ShardingRule.h"
#include "llvm/ADT/StringMap.h"

namespace spmd::aten {

/// The rule that `sharding` and `reduce` say for tensors of these shapes, or in `error` why they say none.
std::optional<ShardingRule> readSharding(llvm::StringRef sharding, llvm::ArrayRef<llvm::StringRef> reduce,
                                         llvm::ArrayRef<llvm::ArrayRef<int64_t>> inputs,
                                         llvm::ArrayRef<llvm::ArrayRef<int64_t>> results, std::string &error);

/// The sizes that `sharding`, which fits tensors of these shapes, has names for.
llvm::StringMap<int64_t> getDimensions(llvm::StringRef sharding, llvm::ArrayRef<llvm::ArrayRef<int64_t>> inputs);

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_ATENCUSTOMCALL_H
